from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from mechnum.errors import MechnumError
from mechnum.report.plain import columns, plain


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (float("nan"), None),
        (np.inf, None),
        (pd.NA, None),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (torch.tensor([0.5, 0.25], dtype=torch.bfloat16), [0.5, 0.25]),
        (torch.tensor(2.0), 2.0),
        (pd.Series(["a", "b"]), ["a", "b"]),
        ({np.int64(2): (np.float32(1.5),)}, {"2": [1.5]}),
        (Path("a/b"), "a/b"),
    ],
)
def test_plain_types(value, expected):
    content = plain(value)
    assert content == expected
    assert type(content) is type(expected)
    json.dumps(content, allow_nan=False)


def test_digits_round_to_significant_digits():
    assert plain([123456.789, 0.000123456789], digits=4) == [123500.0, 0.0001235]


def test_columns_have_no_numpy_types():
    frame = pd.DataFrame({"x": [np.float64(1.0), np.nan], "name": ["a", "b"]})
    assert columns(frame) == {"x": [1.0, None], "name": ["a", "b"]}


def test_other_objects_are_refused():
    with pytest.raises(MechnumError, match="a object cannot be written as plain data: give"):
        plain(object())

from __future__ import annotations

import pytest

from mechnum.cli.tables import print_table
from mechnum.cli.verify import _rows, _spans
from mechnum.models import HookWrite


@pytest.mark.parametrize(
    ("layers", "text"),
    [([], ""), ([3], "3"), ([0, 1], "0-1"), ([2, 0, 4, 3, 9], "0, 2-4, 9"), ([0, 2], "0, 2")],
)
def test_layers_in_spans(layers, text):
    assert _spans(layers) == text


def test_hook_points_that_behave_the_same_share_a_row():
    nan = float("nan")
    writes = [
        HookWrite("hook_embed", "moves the logits", 2.0),
        HookWrite("blocks.0.attn.hook_q", "moves the logits", 0.5),
        HookWrite("blocks.0.attn.hook_pattern", "discarded", 0.0),
        HookWrite("blocks.1.attn.hook_q", "moves the logits", 0.25),
        HookWrite("blocks.1.attn.hook_pattern", "moves the logits", 1.0),
        HookWrite("blocks.2.attn.hook_q", "refused", nan),
    ]
    assert _rows(writes) == [
        ("hook_embed", "", "moves the logits", "2"),
        ("attn.hook_q", "0-1", "moves the logits", "0.25 to 0.5"),
        ("attn.hook_pattern", "0", "discarded", "0"),
        ("attn.hook_pattern", "1", "moves the logits", "1"),
        ("attn.hook_q", "2", "refused", ""),
    ]


def test_table_in_a_pipe_is_not_wrapped(capsys):
    words = "long " * 60
    print_table(("name", "share", "about"), [("a", "5.00%", words), ("bbbbbb", "75.00%", "[b]")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.rstrip() for line in lines] == [
        "name     share  about",
        f"a        5.00%  {words.rstrip()}",
        "bbbbbb  75.00%  [b]",
    ]


def test_table_without_rows(capsys):
    print_table(("name",), [])
    assert capsys.readouterr().out.strip() == "name"

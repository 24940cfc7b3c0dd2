from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mechnum as mn

from . import planted


@pytest.fixture(scope="session")
def clock_59():
    return mn.load("clock-59")


@pytest.fixture
def site(tmp_path, monkeypatch) -> Iterator[Path]:
    """A folder of packages, as an installer would fill it."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    planted.measured.clear()
    yield folder
    planted.interrupted.clear()
    for name in set(sys.modules) - before:
        if Path(str(getattr(sys.modules[name], "__file__", ""))).is_relative_to(folder):
            del sys.modules[name]


@pytest.fixture
def circuit(site):
    """The name of a circuit of three planted steps."""
    planted.package(site, "planted_circuit")
    planted.distribution(site, planted="planted_circuit")
    return "planted"

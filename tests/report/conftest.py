from __future__ import annotations

from collections.abc import Iterator

import pytest
import xarray as xr

from docs.tools.browser import Browser

from .synthetic import trace


@pytest.fixture
def results() -> xr.DataTree:
    return trace()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    chromium.prefer("light")
    chromium.resize(1280, 900)
    yield chromium
    chromium.run("localStorage.clear()")

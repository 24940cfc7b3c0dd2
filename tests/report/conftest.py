from __future__ import annotations

from collections.abc import Iterator

import pytest
import xarray as xr

from docs.tools.browser import Browser, find_chromium

from .synthetic import trace


@pytest.fixture
def results() -> xr.DataTree:
    return trace()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium here: `apt-get install chromium`")
    with Browser(program) as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    chromium.prefer("light")
    chromium.resize(1280, 900)
    yield chromium
    chromium.run("localStorage.clear()")

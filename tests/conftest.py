"""Test-wide settings, made before anything of mechnum or transformers is imported."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from jaxtyping import config, install_import_hook

from docs.tools.browser import Browser, find_chromium

# Transformers and the hub read these at import: a test that reaches for the network fails at once.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["WANDB_MODE"] = "disabled"

# Every annotated shape and type is checked at each call. The command line has no shapes, and Typer
# passes it a context that is no typer.Context.
PARTS = [path.stem for path in (Path(__file__).parents[1] / "mechnum").iterdir()]
CHECKED = [f"mechnum.{part}" for part in [*PARTS, "circuits"] if part not in ("cli", "__main__")]
install_import_hook(CHECKED, "beartype.beartype")


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Without those checks, as users run it: for what the package itself refuses."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A browser without a network, for all tests of pages."""
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium here: `apt-get install chromium`")
    with Browser(program) as browser:
        yield browser

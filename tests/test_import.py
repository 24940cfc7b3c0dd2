"""`import mechnum` is light, and its lazy names are the ones that it promises."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import mechnum

HEAVY = ("numpy", "scipy", "torch", "transformer_lens", "transformers", "xarray")
SOURCE = ast.parse(Path(mechnum.__file__).read_text(encoding="utf-8"))


def heavy_modules_after(code: str) -> list[str]:
    code += f"\nimport sys\nprint(*(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


def test_import_loads_nothing_heavy():
    assert heavy_modules_after("import mechnum") == []


def test_dir_and_version_load_nothing_heavy():
    assert heavy_modules_after("import mechnum; dir(mechnum); mechnum.__version__") == []


@pytest.mark.parametrize("name", mechnum.__all__)
def test_every_promised_name_is_there(name):
    assert name in dir(mechnum)
    assert getattr(mechnum, name) is not None


def test_star_import_agrees_with_type_checkers():
    guarded = [node for node in SOURCE.body if isinstance(node, ast.If)]
    imports = [node for guard in guarded for node in guard.body if isinstance(node, ast.ImportFrom)]
    typed = {alias.name for node in imports for alias in node.names}
    assert typed == set(mechnum._SUBPACKAGES) | set(mechnum._MODULE_OF)
    assert typed | {"MechnumError", "__version__"} == set(mechnum.__all__)


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'helium'"):
        mechnum.helium  # noqa: B018


def test_module_runs_as_script():
    done = subprocess.run(
        [sys.executable, "-m", "mechnum", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"mechnum {mechnum.__version__}\n"


@pytest.mark.parametrize(
    "part", ["circuits.instruments", "helix", "probes", "report", "tasks", "training"]
)
def test_lazy_packages_list_their_names_and_refuse_others(part):
    package = import_module(f"mechnum.{part}")
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match=f"mechnum.{part}' has no attribute 'nothing'"):
        package.nothing  # noqa: B018

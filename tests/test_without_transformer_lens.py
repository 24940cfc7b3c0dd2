"""What works where TransformerLens is missing, and what the rest says."""

from __future__ import annotations

import subprocess
import sys

HIDE = """
import importlib.metadata, sys

sys.modules["transformer_lens"] = None
found = importlib.metadata.version


def version(name):
    if name == "transformer-lens":
        raise importlib.metadata.PackageNotFoundError(name)
    return found(name)


importlib.metadata.version = version
"""
RUN = """
from mechnum.cli import main

sys.argv = ["mechnum", *{arguments!r}]
main()
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = HIDE + RUN.format(arguments=arguments)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_import_and_help_work():
    done = run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: mechnum" in done.stdout


def test_loading_a_native_net_names_the_supported_range(tmp_path):
    net = tmp_path / "net.toml"
    sizes = "n_layers=1 n_heads=1 d_model=8 d_head=8 d_mlp=8 n_ctx=3 d_vocab=4 d_vocab_out=3"
    net.write_text("\n".join(['weights = "net.safetensors"', "[net]", *sizes.split()]))
    done = run("verify", str(net))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("mechnum: TransformerLens is not installed")
    assert "3.9" in done.stderr

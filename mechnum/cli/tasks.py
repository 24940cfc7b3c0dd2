"""The task and the pairs that a command's options describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

from mechnum.errors import MechnumError

if TYPE_CHECKING:
    from mechnum.models import Model
    from mechnum.tasks import Accuracy, Pairs, Task
    from mechnum.tasks.arithmetic import ModularAddition
    from mechnum.tasks.task import Operand

T = TypeVar("T", int, float)


def chosen_task(
    model: Model,
    name: str | None,
    between: str,
    max_sum: int | None,
    shots: int,
    digits: Literal["single", "last"],
    template: str | None,
    seed: int,
) -> Task:
    """The task of this name, or the model's own, with the options that it takes."""
    from mechnum.tasks import addition, operation, parse
    from mechnum.tasks.numbers import parse_range
    from mechnum.tasks.operations import OPERATIONS

    name = name or model.default_task or "addition"
    if name == "addition":
        return addition(parse_range(between), max_sum, shots, digits, template, seed)
    if name in OPERATIONS:
        if max_sum is not None:
            raise MechnumError(f"--max-sum does not go with {name}: use it with --task addition")
        # Not every operation has an answer for all of the default range; it knows for which.
        numbers = None if between == "0-99" else parse_range(between)
        return operation(name, numbers, shots, digits, template, seed)
    if (between, max_sum, shots, digits, template) != ("0-99", None, 0, "single", None):
        raise MechnumError(
            f"--range, --max-sum, --shots, --digits and --template do not go with {name}: "
            "use them with --task addition"
        )
    return parse(name)


def modular_task(name: str | None) -> ModularAddition | None:
    """The addition modulo P of this name.

    Raises:
        MechnumError: it is another task.
    """
    if name is None:
        return None
    from mechnum.tasks import parse
    from mechnum.tasks.arithmetic import ModularAddition

    if not isinstance(task := parse(name), ModularAddition):
        raise MechnumError(f"--task {name} is not modular: write it like modular_addition:113")
    return task


def drawn_pairs(
    task: Task,
    model: Model,
    n: int,
    vary: Operand,
    seed: int,
    wrong_too: bool,
    accuracy: Accuracy | None = None,
) -> tuple[Pairs, dict[str, str | int | float]]:
    """`n` pairs at most, and what a report says of the prompts that they are drawn from.

    Args:
        accuracy: of the model, where it is known.

    Raises:
        MechnumError: the model answers too few prompts correctly for a single pair.
    """
    from mechnum.tasks.pairs import TooFewPairs

    said: dict[str, str | int | float] = {"template": task.form(model)}
    if wrong_too:
        pairs = task.pairs_at_most(model, n, vary, seed, correct_only=False)
        return pairs, {**said, "answered": "all, also those that the model answers wrongly"}
    accuracy = accuracy or task.accuracy(model)
    try:
        pairs = task.pairs_at_most(model, n, vary, seed, accuracy=accuracy)
    except TooFewPairs as few:
        raise MechnumError(
            f"{model.name} answers {int(accuracy.correct.sum())} of {len(accuracy)} prompts of "
            f"{task.name} correctly, and no pair of these fits: add --wrong-too to patch prompts "
            "that it answers wrongly, or choose numbers that it can do"
        ) from few
    said |= {
        "answered": "those that the model answers correctly",
        "accuracy": accuracy.share,
        "n_prompts": len(accuracy),
    }
    return pairs, said


def position_of(text: str) -> str | int:
    """A position as the library takes it: an index, or a name."""
    return int(text) if text.removeprefix("-").isdecimal() else text


def numbers_in(text: str, option: str, kind: type[T] = float) -> tuple[T, ...]:
    """`2,5,10` → the numbers, of the kind that is asked for.

    Raises:
        MechnumError: it is something else.
    """
    try:
        return tuple(kind(part) for part in text.split(","))
    except ValueError:
        raise MechnumError(
            f"{option} {text!r} is not a list of numbers: write it like 2,5,10"
        ) from None

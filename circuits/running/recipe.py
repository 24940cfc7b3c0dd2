"""What a `recipe.toml` says: the question, the model, and the steps that answer it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from mechnum.errors import MechnumError
from mechnum.toml_files import checked, unknown

SHARED = ("seed", "n_pairs")
"""Settings of the recipe, for each step that has them and no values of its own."""

_RUN = ("task", *SHARED)


class StepEntry(BaseModel):
    """One measurement of a circuit.

    Attributes:
        name: of the step, by which others need it and settings name it.
        title: of its part of the report.
        shows: what it shows, in a sentence.
        instrument: a name of `mechnum.circuits.running.instruments.BUILT_IN`, or
            `package.module:function`.
        needs: earlier steps whose results it is given.
        model: that it measures, where it is not the recipe's.
        settings: of the instrument, where they are not its defaults.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    title: str = Field(min_length=1)
    shows: str = Field(min_length=1)
    instrument: str
    needs: tuple[str, ...] = ()
    model: str | None = None
    settings: dict[str, JsonValue] = Field(default_factory=dict)


class Recipe(BaseModel):
    """The contents of a `recipe.toml`.

    Attributes:
        title: of the circuit.
        question: that the circuit answers.
        paper: authors, year, title, place.
        model: that is measured by default, as `mechnum.load` takes it.
        task: by default the model's own; a task or a hidden process.
        seed: of all that is drawn.
        n_pairs: pairs of prompts, at most, of each step that patches.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    title: str = Field(min_length=1)
    question: str = Field(min_length=1)
    paper: str = Field(min_length=1)
    model: str = Field(min_length=1)
    task: str | None = None
    seed: int = Field(default=0, ge=0)
    n_pairs: int = Field(default=100, gt=0)
    steps: tuple[StepEntry, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _steps_follow_from_each_other(self) -> Recipe:
        names: list[str] = []
        for step in self.steps:
            if step.name in names:
                raise ValueError(f"two steps are called {step.name}: give each its own name")
            for need in step.needs:
                if need not in names:
                    raise ValueError(
                        f"step {step.name} needs a step that does not come before it: "
                        f"{unknown('step', need, names)}"
                    )
            names.append(step.name)
        return self

    def changed(self, given: Mapping[str, Any]) -> Recipe:
        """The recipe with other settings: `task`, `seed`, `n_pairs`, and `steps.NAME.SETTING`.

        Whether a step has such a setting is its instrument's to know.

        Raises:
            MechnumError: on other names, and on values that do not fit.
        """
        content = self.model_dump()
        steps = {step["name"]: step for step in content["steps"]}
        for name, value in given.items():
            kind, *rest = name.split(".")
            if not rest and kind in _RUN:
                content[kind] = value
            elif kind == "steps" and len(rest) == 2:
                if rest[0] not in steps:
                    raise MechnumError(unknown("step", rest[0], steps))
                steps[rest[0]]["settings"][rest[1]] = value
            else:
                known = [*_RUN, *(f"steps.{step}.SETTING" for step in steps)]
                raise MechnumError(unknown("setting", name, known))
        return checked(Recipe, content, "the settings")


def parse_recipe(content: Mapping[str, Any], where: str) -> Recipe:
    """The recipe in what a file holds.

    Raises:
        MechnumError: on unknown and missing keys, on values that do not fit, on two steps of one
            name, and on a step that needs one which does not come before it.
    """
    return checked(Recipe, content, where, {*Recipe.model_fields, *StepEntry.model_fields})

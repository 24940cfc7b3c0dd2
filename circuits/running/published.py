"""What a `published.toml` says: the figures of a paper, its models, and where each is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from mechnum.toml_files import unknown

if TYPE_CHECKING:
    from mechnum.models import Model, TokenTable

Kind = Literal[
    "the same model", "same shapes, other training", "same family, other size", "another family"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""How near a measured model can be to a paper's, the nearest first."""

Scalar = str | int | float


class PaperModel(BaseModel):
    """A model that a paper measured.

    Attributes:
        name: as the paper calls it.
        hugging_face: ids of its weights.
        fingerprints: `mechnum.Model.fingerprint` of its weights.
        family: as in `mechnum.models.ModelSpec`; None for families that mechnum does not read.
        shapes: fields of `ModelSpec`.
        measured_on: the models that its figures are measured on, at least as near as this.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    hugging_face: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()
    family: str | None = None
    shapes: dict[str, Scalar] = Field(default_factory=dict)
    measured_on: Kind = "another family"

    @model_validator(mode="after")
    def _shapes_are_known(self) -> PaperModel:
        # Here, so that circuits are listed without the seconds that torch takes to import.
        from mechnum.models.spec import ModelSpec

        for name in self.shapes:
            if name not in ModelSpec.__dataclass_fields__:
                raise ValueError(unknown("shape", name, ModelSpec.__dataclass_fields__))
        return self

    def kinship(self, model: Model | TokenTable) -> Kind:
        """How near a model is to this one: one of `KINDS`. A mere table of tokens is far from all
        models."""
        from mechnum.models import TokenTable

        if isinstance(model, TokenTable) or model.spec.family != self.family:
            return KINDS[3]
        of_a_model = self.shapes.items()
        if not of_a_model or any(getattr(model.spec, name) != size for name, size in of_a_model):
            return KINDS[2]
        ids = {name.lower() for name in self.hugging_face}
        same = model.name.lower() in ids or model.fingerprint in self.fingerprints
        return KINDS[0] if same else KINDS[1]

    def is_measured_on(self, kinship: Kind) -> bool:
        """Whether its figures say anything of a model that is as near as this."""
        return KINDS.index(kinship) <= KINDS.index(self.measured_on)


class PublishedFigure(BaseModel):
    """One figure of a paper, and where it is measured here.

    Attributes:
        name: the quantity.
        value: as it was published; or `lower` and `upper`, one of which may be missing.
        unit: empty for counts and shares.
        model: a key of `[models]`.
        place: in the paper.
        tolerance: how far the same model may be from it, in the same unit.
        note: what must be known to compare the two.
        steps: of the recipe, any of whose results it can be read from; it is read from the one
            whose model is nearest to the paper's.
        reading: a function in the circuit's `readings`, of a step's results and `arguments`; it
            gives NaN where they do not have it.
        requires: attributes that a step's results must have to be the same quantity.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    unit: str = ""
    model: str
    place: str = Field(min_length=1)
    tolerance: float | None = Field(default=None, ge=0)
    note: str = ""
    steps: tuple[str, ...] = ()
    reading: str | None = None
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    requires: dict[str, Scalar | list[Scalar]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_whole(self) -> PublishedFigure:
        ends = (self.lower, self.upper)
        if (self.value is None) == (ends == (None, None)):
            raise ValueError(f"{self.name}: give either value, or lower and upper")
        if bool(self.steps) != (self.reading is not None):
            raise ValueError(f"{self.name}: give both steps and reading, or none")
        return self

    def lacks(self, attrs: Mapping[Any, Any]) -> str:
        """The first that attributes of results lack to be the same quantity, in words; or ""."""
        for name, value in self.requires.items():
            # Several numbers are an array there, and one of them alone comes as a scalar.
            wanted, given = np.atleast_1d(value), np.atleast_1d(attrs.get(name, ""))
            if not np.array_equal(wanted, given):
                return f"{name.replace('_', ' ')} {', '.join(map(str, wanted))}"
        return ""

    def within(self, measured: float) -> str:
        """Whether a figure of the same model is as published: "yes", "no", or "" if unknown."""
        if self.tolerance is None or not np.isfinite(measured):
            return ""
        ends = (self.value, self.value) if self.value is not None else (self.lower, self.upper)
        low = -np.inf if ends[0] is None else ends[0]
        high = np.inf if ends[1] is None else ends[1]
        return "yes" if low - self.tolerance <= measured <= high + self.tolerance else "no"


class Published(BaseModel):
    """The contents of a `published.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str = ""
    models: dict[str, PaperModel] = Field(default_factory=dict)
    figures: tuple[PublishedFigure, ...] = ()

    @classmethod
    def keys(cls) -> set[str]:
        """All keys that the file may have."""
        kinds = (cls, PaperModel, PublishedFigure)
        return {key for kind in kinds for key in kind.model_fields}

    @model_validator(mode="after")
    def _figures_have_models(self) -> Published:
        names = set()
        for figure in self.figures:
            if figure.model not in self.models:
                raise ValueError(f"{figure.name}: {unknown('model', figure.model, self.models)}")
            if (figure.model, figure.name) in names:
                raise ValueError(f"{figure.name} is there twice for {figure.model}: rename one")
            names.add((figure.model, figure.name))
        return self

"""Circuits as files of other programs: EAP-IG and MIB, Neuronpedia, and GraphML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import xarray as xr

from mechnum.errors import MechnumError
from mechnum.files import replacing
from mechnum.models.spec import ModelSpec
from mechnum.patching.circuit import eap_ig, graphml, neuronpedia
from mechnum.patching.circuit.circuit import Circuit, FileFormat
from mechnum.patching.circuit.records import refuse

_FORMAT_OF: dict[str, FileFormat] = {".json": "eap-ig", ".graphml": "graphml"}


def write_circuit(
    circuit: Circuit, path: str | Path, spec: ModelSpec, file_format: FileFormat | None = None
) -> Path:
    """Write the circuit, whole or not at all; see `Circuit.save`."""
    target = Path(path)
    text = encode_circuit(circuit, spec, _chosen(target, file_format), target.stem)
    with replacing(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return target


def encode_circuit(circuit: Circuit, spec: ModelSpec, file_format: FileFormat, name: str) -> str:
    """The contents of the circuit's file; see `Circuit.save`.

    Args:
        name: of the graph, where the format has a place for it.

    Raises:
        MechnumError: on edges that the model or the format does not have, and on numbers that are
            not finite.
    """
    # Refuses edges that the model does not have.
    circuit.graph(spec).places(circuit.edges)
    if file_format == "eap-ig":
        text = eap_ig.encode(circuit, spec)
    elif file_format == "neuronpedia":
        text = neuronpedia.encode(circuit, spec, name)
    else:
        text = graphml.encode(circuit, spec)
    return text + "\n"


def read_circuit(path: str | Path, spec: ModelSpec | None = None) -> Circuit:
    """Read a circuit in any of the formats; see `Circuit.load`."""
    source = Path(path)
    text = _text(source)
    if text.lstrip().startswith("<"):
        circuit = graphml.decode(text, source)
    else:
        content = _json(text, source)
        if isinstance(content, dict) and "links" in content:
            circuit = neuronpedia.decode(content, source)
        else:
            circuit = eap_ig.decode(content, source, spec)
    if spec is not None:
        circuit.graph(spec).places(circuit.edges)
    return circuit


def read_scores(path: str | Path, spec: ModelSpec | None = None) -> xr.DataArray:
    """The scores of all edges in an EAP-IG or MIB file, in its circuit or not.

    Returns:
        Over (sender, receiver), as `Circuit.from_scores` takes them; NaN where there is none.

    Raises:
        MechnumError: on a file that is none of these, or of another model.
    """
    source = Path(path)
    return eap_ig.scores_of(_json(_text(source), source), source, spec)


def _chosen(path: Path, file_format: FileFormat | None) -> FileFormat:
    chosen = file_format or _FORMAT_OF.get(path.suffix.lower())
    if chosen is None or chosen not in get_args(FileFormat):
        raise MechnumError(
            f"no format of circuits is called {chosen or path.name!r}: name the file .json or "
            f".graphml, or use one of {', '.join(get_args(FileFormat))}"
        )
    return chosen


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise MechnumError(
            f"cannot read {path} ({error.strerror}): give the path of a circuit's file"
        ) from None
    except UnicodeDecodeError:
        refuse(path, "it is no text")


def _json(text: str, path: Path) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        refuse(path, f"neither JSON nor GraphML: {error}")

"""The page of a trace: which parts of a model compute the answer, how numbers look inside it."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from mechnum.report import findings, reading, words
from mechnum.report.blocks import Text
from mechnum.report.page import Page, Section
from mechnum.report.sections.attention import attention_section
from mechnum.report.sections.effects import heads_section, layers_section
from mechnum.report.sections.helix import helix_section
from mechnum.report.sections.prompts import answers_section, tokens_section
from mechnum.report.sections.provenance import provenance_section


def trace_page(results: xr.DataTree) -> str:
    """The page of a trace as one HTML document; parts that the trace lacks are left out.

    `results` is the tree that `mechnum.report.reading` describes.
    """
    return build_page(results).html()


def build_page(results: xr.DataTree) -> Page:
    """The page of a trace before it is rendered."""
    attrs = results.attrs
    effects = findings.effect_frames(results)
    sites = findings.site_frames(results)
    sections = [
        _summary(results, effects, sites),
        tokens_section(results),
        answers_section(results),
        heads_section(results, effects),
        layers_section(results, effects),
        helix_section(results, sites),
        attention_section(results, effects),
        provenance_section(results),
    ]
    return Page(
        title=f"How {attrs.get('model', 'the model')} computes {attrs.get('task', 'its answer')}",
        lead=findings.accuracy_sentence(results),
        sections=[section for section in sections if section is not None],
    )


def _summary(
    results: xr.DataTree, effects: dict[str, pd.DataFrame], sites: dict[str, pd.DataFrame]
) -> Section | None:
    points = findings.effect_points(effects) + findings.helix_points(sites)
    points += reading.left_out(results)
    if not points:
        return None
    attrs = reading.attributes(results)
    note = (
        f"Effects and scores are changes of {words.metric(attrs)} in the "
        f"{words.patched_run(attrs)} run, means over pairs with 95 % intervals; 0 is no "
        "effect. y is the right answer to a pair's clean prompt, y\N{PRIME} that to its corrupt "
        "prompt. Nodes are ranked on the pairs that also measure them, so the largest are likely "
        "to be somewhat overstated."
    )
    return Section("What was found", [Text(points=points), Text([note])])

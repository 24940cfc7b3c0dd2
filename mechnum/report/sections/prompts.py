"""Sections about the prompts: tokens and positions, accuracy and errors."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from mechnum.report import figures, findings, reading, words
from mechnum.report.blocks import Block, Caption, Figure, Text, Tokens
from mechnum.report.intervals import COUNTED
from mechnum.report.page import Section

_MOST = 40_000  # Prompts of which each can still be seen as a mark of its own.


def tokens_section(results: xr.DataTree) -> Section | None:
    """The example prompt's tokens with their positions and roles, beside its corrupt prompt's."""
    tokens = reading.example_tokens(results)
    if tokens is None:
        return None
    roles = reading.example_roles(results)
    corrupt = reading.corrupt_tokens(results)
    text = "The tokens of one prompt as the model receives them, with their positions."
    if corrupt is not None:
        text = "The tokens of one clean prompt as the model receives them, with their positions."
    if roles:
        text += " Marked tokens are the sites that this page speaks of"
        text += "; the answer is read at end." if "end" in roles.values() else "."
    if "bos" in results.attrs:
        text += f" BOS token: {results.attrs['bos']}."
    blocks: list[Block] = [Tokens(tokens, roles, Caption(text))]
    if corrupt is not None:
        blocks.append(Tokens(corrupt, roles, Caption("The corrupt prompt of the same pair.")))
    return Section("Tokens and positions", blocks)


def answers_section(results: xr.DataTree) -> Section | None:
    """How often the model is right, by how much it errs, and where."""
    errors = reading.error_frame(results)
    prompts = reading.prompt_frame(results)
    blocks: list[Block] = []
    if errors is not None and errors["count"].sum():
        blocks.append(_histogram(errors))
    needed = {"a", "b", "answer", "predicted", "correct"}
    if prompts is not None and needed <= set(prompts) and len(prompts) <= _MOST:
        failed = prompts[~prompts["correct"].astype(bool)]
        if len(failed):
            blocks.append(_map(prompts, failed))
    if not blocks:
        sentence = findings.accuracy_sentence(results)
        if not sentence:
            return None
        if float(results.attrs["accuracy"]) == 1:
            sentence += " There are no errors to show."
        blocks.append(Text([sentence]))
    return Section("Accuracy and errors", blocks)


def _histogram(errors: pd.DataFrame) -> Figure:
    common = errors.sort_values("count", ascending=False, kind="stable").head(3)
    named = [
        f"{words.number(int(error), sign=True)} ({int(count):,} times)"
        for error, count in common[["error", "count"]].to_numpy()
    ]
    return Figure(
        title="Errors",
        views={"errors": figures.error_histogram(errors)},
        caption=Caption(
            text="How far the predicted number is from the answer, over all wrong prompts whose "
            f"prediction is a number. Most frequent: {words.listed(named)}.",
            estimand=words.ERROR,
            n=f"{int(errors['count'].sum()):,} wrong prompts",
            interval=COUNTED,
            null=words.NO_PEAKS,
        ),
        alt=f"Histogram of predicted minus answer. Most frequent: {words.listed(named)}.",
        data=errors,
    )


def _map(prompts: pd.DataFrame, failed: pd.DataFrame) -> Figure:
    return Figure(
        title="Where the errors are",
        views={"errors": figures.answer_map(prompts)},
        caption=Caption(
            text="Each mark is a wrong prompt, coloured by predicted \N{MINUS SIGN} answer; right "
            "ones are left empty. The colour scale ends where 95 % of the errors lie.",
            estimand=words.ERROR,
            n=f"{len(failed):,} of {len(prompts):,} prompts are wrong",
            interval="none: each mark is one prompt",
            null="errors that do not depend on a and b: marks and colours spread evenly",
        ),
        alt=f"Map of a and b with {len(failed):,} wrong prompts marked.",
        data=failed,
        width=420,
        widest=560,
    )

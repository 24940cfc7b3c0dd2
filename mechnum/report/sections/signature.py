"""The section about the errors of a model as it is: kinds and carries."""

from __future__ import annotations

import xarray as xr

from mechnum.report import figures, reading, words
from mechnum.report.blocks import Block, Caption, Figure, Table, Text
from mechnum.report.intervals import COUNTED
from mechnum.report.page import Section
from mechnum.report.sections.lens import PROMPTS_INTERVAL
from mechnum.report.wave_frames import carry_frame, kinds_frame


def signature_section(results: xr.DataTree) -> Section | None:
    """Errors of the unfiltered model: histogram, kinds, and whether they come with carries."""
    signature = reading.group(results, "signature")
    if signature is None:
        return None
    n_wrong = int(signature.attrs["n_wrong"])
    if not n_wrong:
        sentence = "The model makes no errors on these prompts, so there is none to look at."
        return Section("Errors", [Text([sentence])])
    blocks: list[Block] = []
    errors = signature["count"].to_dataframe().reset_index()
    if len(errors):
        blocks.append(
            Figure(
                title="How far wrong answers are off",
                views={"errors": figures.error_histogram(errors)},
                caption=Caption(
                    text="Predicted minus right number, over wrong answers that are numbers.",
                    estimand=words.ERROR,
                    n=f"{int(errors['count'].sum()):,} wrong prompts",
                    interval=COUNTED,
                    null=words.NO_PEAKS,
                ),
                alt="Histogram of predicted minus answer.",
                data=errors,
            )
        )
    blocks.append(
        Table(
            title="Kinds of answers",
            frame=kinds_frame(signature),
            caption=Caption(
                text="Of wrong answers that are numbers; “no number” of all wrong answers; the "
                "last two of all answers that are numbers.",
                n=f"{n_wrong:,} wrong of {int(signature.attrs['n_prompts']):,} prompts, "
                f"{int(signature.attrs['n_no_number']):,} of them no number",
                interval=PROMPTS_INTERVAL,
            ),
        )
    )
    carries = carry_frame(signature)
    if carries is not None:
        blocks.append(
            Table(
                title="Carries",
                frame=carries,
                caption=Caption(
                    text="Share of prompts whose units digits add up to more than 9, or 10, among "
                    "the wrong ones and among all.",
                    n=words.count_range([n_wrong], "wrong prompts"),
                    null="wrong and right prompts carry as often: Pearson's χ² test, chi2_p",
                ),
            )
        )
    return Section("Errors", blocks)

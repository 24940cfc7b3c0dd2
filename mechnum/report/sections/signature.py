"""The section about the errors of a model as it is: kinds and carries."""

from __future__ import annotations

import xarray as xr

from mechnum.report import figures, reading, words
from mechnum.report.blocks import Block, Caption, Figure, Table, Text
from mechnum.report.intervals import COUNTED
from mechnum.report.page import Section
from mechnum.report.sections.lens import PROMPTS_INTERVAL
from mechnum.report.wave_frames import carry_frame, kinds_frame

KINDS_OF = (
    "share of the wrong answers that are numbers; “no number”: of all wrong answers; “all "
    "answers”: of all that are numbers, right ones too"
)
EVEN_ERRORS = "errors spread evenly: 10 % are multiples of 10, 2 % of 50, and half are even"


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
                text="An error is predicted minus right number. A multiple of 10 leaves the units "
                "digit right, an even one the parity; below 6: at most 5 away.",
                estimand=KINDS_OF,
                n=f"{n_wrong:,} wrong of {int(signature.attrs['n_prompts']):,} prompts, "
                f"{int(signature.attrs['n_no_number']):,} of them no number",
                interval=f"{PROMPTS_INTERVAL}; without width where the share is 0 or 1",
                null=EVEN_ERRORS,
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
                    text="carry: 9, the sum from which tens are carried, or 10, the paper's own "
                    "threshold. low and high end the interval of carry_wrong.",
                    estimand="share of prompts whose units digits add up to more than the carry, "
                    "among the wrong ones (carry_wrong) and among all (carry_all)",
                    n=f"{words.count_range([n_wrong], 'wrong prompts')} of "
                    f"{int(signature.attrs['n_prompts']):,}",
                    interval="95 % Wilson interval of the share of wrong prompts",
                    null="wrong and right prompts carry as often: Pearson's χ² test, chi2_p",
                ),
            )
        )
    return Section("Errors", blocks)

"""Numbers of several tokens in a real Llama, at their last token, in texts that differ little."""

from __future__ import annotations

import pytest

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.probes import (
    FourierRegressionProbe,
    LinearNumberProbe,
    collect_states,
    layer_tables,
    probe_curves,
)
from mechnum.tasks.contexts import Context, context_prompts

TEXTS = ("The number 0", "A 0", "Number: 0", "x = 0")
THREE = FourierRegressionProbe((1000, 100, 10))


@pytest.mark.slow
def test_numbers_are_waves_which_change_with_the_text_in_late_layers():
    """A trial before this code read 99.1 %, 99.7 % and 95 % of unseen numbers at layers 4, 8, 24.

    It read 1.5 % by a line, and 95.5 % with three periods.
    """
    try:
        model = mn.load("smollm2")
    except MechnumError as absent:
        pytest.skip(str(absent))
    prompts = context_prompts(model, [Context("short", TEXTS)], range(1000), len(TEXTS))
    tables = layer_tables(collect_states(model, prompts, [4, 8, 24]))
    probes = {"waves": FourierRegressionProbe(), "line": LinearNumberProbe(), "three": THREE}
    seen = probe_curves(probes, tables, template_share=0.0)["accuracy"]
    assert (seen.sel(probe="waves", layer=[4, 8]) > 0.98).all()
    assert abs(seen.sel(probe="waves", layer=24) - 0.95) < 0.02
    assert abs(seen.sel(probe="three", layer=8) - 0.955) < 0.03
    assert (seen.sel(probe="line") < 0.03).all()
    apart = probe_curves({"waves": FourierRegressionProbe()}, tables)["accuracy"].sel(probe="waves")
    assert apart.sel(layer=8) > 0.9
    assert apart.sel(layer=24) < 0.6

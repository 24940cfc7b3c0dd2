"""The table of all layers against states read by TransformerLens' own hooks, and planted nets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr

import mechnum as mn
from mechnum.beliefs import belief_geometry, belief_regression
from mechnum.beliefs.geometry import block_readouts
from mechnum.beliefs.prefixes import prefixes
from mechnum.beliefs.states import one_hot
from mechnum.beliefs.verdict import BOTH, NEXT_TOKEN, TOKEN
from mechnum.errors import MechnumError
from mechnum.tasks import processes as P
from tests.beliefs.planted import random_net, table_net
from tests.tasks.processes.paths import joint


@pytest.fixture(scope="module")
def net():
    return random_net()


@pytest.fixture(scope="module")
def table(net):
    return belief_geometry(net, P.rrxor(), untrained=random_net(1), resamples=50, horizons=3)


def hooked(model, strings: np.ndarray) -> dict[tuple[str, str], np.ndarray]:
    """Residuals [string, pos, d] by layer and norm, from TransformerLens' cache."""
    with torch.no_grad():
        _, cache = model.tl.run_with_cache(torch.from_numpy(strings))
    names = {
        ("0", "before"): "blocks.0.hook_resid_pre",
        ("1", "before"): "blocks.1.hook_resid_pre",
        ("last", "before"): "blocks.1.hook_resid_post",
    }
    states = {place: cache[name].numpy() for place, name in names.items()}
    module = model.tl.original_model
    norms = {"0": module.layers[0].ln1, "1": module.layers[1].ln1, "last": module.ln_out}
    with torch.no_grad():
        for layer, norm in norms.items():
            states[layer, "after"] = norm(torch.from_numpy(states[layer, "before"])).numpy()
    for norm in ("before", "after"):
        parts = [states[layer, norm] for layer in ("0", "1", "last")]
        states["all", norm] = np.concatenate(parts, axis=-1)
    return states


def test_every_cell_is_the_regression_on_the_states_of_that_place(net, table):
    process = P.rrxor()
    # The strings behind the prefixes, whole: read off the longest ones.
    longest = table.position.values == 5
    strings = np.array(
        [s for s in itertools.product((0, 1), repeat=6) if process.log_likelihood([s])[0] > -99]
    )
    assert longest.sum() == len(strings)
    states = hooked(net, strings)
    others = hooked(random_net(1), strings)
    beliefs = process.beliefs(strings)[:, 1:]
    # A prefix is told by its position, its belief, and what the embedding has of its token.
    found = prefixes(process, 6, 5000, 0, None)
    np.testing.assert_array_equal(found.string, table.string)
    row_of = {tuple(string): row for row, string in enumerate(strings)}
    rows = np.array([row_of[tuple(found.strings[s])] for s in found.string])
    place = rows, found.position
    np.testing.assert_allclose(beliefs[place], table.belief, atol=1e-12)
    for key, whole in states.items():
        controls = {
            "current token": one_hot(strings[place], 2),
            "next-token distribution": process.next_token(beliefs[place]),
            "token and next-token distribution": np.column_stack(
                [one_hot(strings[place], 2), process.next_token(beliefs[place])]
            ),
            "untrained net": others[key][place],
        }
        expected = belief_regression(
            whole[place], beliefs[place], table.weight, table.string, controls, resamples=50
        )
        own = table.sel(layer=key[0], norm=key[1])
        assert list(own.predictor.values) == list(expected.predictor.values)
        # States are held in float32.
        for name in ("mse", "r2", "gain", "gain_low", "mse_high", "rmse"):
            np.testing.assert_allclose(own[name], expected[name], atol=2e-4, err_msg=str(key))
        np.testing.assert_allclose(own.predicted, expected.predicted, atol=5e-3)
        assert str(own.verdict.values) == str(expected.verdict.values)


def test_layers_are_compared_with_all_joined(table):
    """Squared errors of the predictions that are kept, and resamples of strings written out."""
    gap = (table.predicted - table.belief) ** 2
    error = gap.mean("coordinate") * table.weight
    more = error - error.sel(layer="all")
    np.testing.assert_allclose(table.joined_gain, more.sum("prefix"), atol=1e-12)
    own = more.sel(layer="1", norm="after").values
    strings = np.unique(table.string)
    sums, weights = (
        np.array([values[table.string.values == string].sum() for string in strings])
        for values in (own, table.weight.values)
    )
    counts = np.random.default_rng(0).multinomial(
        len(strings), np.full(len(strings), 1 / len(strings)), 4000
    )
    ends = np.quantile(counts @ sums / (counts @ weights), (0.025, 0.975))
    at = table.sel(layer="1", norm="after")
    width = ends[1] - ends[0]
    assert float(at.joined_gain_low) == pytest.approx(ends[0], abs=0.25 * width)
    assert float(at.joined_gain_high) == pytest.approx(ends[1], abs=0.25 * width)


def test_what_token_and_next_token_tell_together_is_no_news():
    """A net whose vectors are the answer to both: each control alone is worse, both are not."""
    process = P.from_matrices(
        # The token says which half; the next token then which state of it.
        [
            [[0.9, 0, 0, 0], [0, 0.2, 0, 0], [0.5, 0, 0, 0], [0, 0.5, 0, 0]],
            [[0, 0, 0.1, 0], [0, 0, 0, 0.8], [0, 0, 0.5, 0], [0, 0, 0, 0.5]],
        ],
        start=np.full(4, 0.25),
    )
    strings = process.sample(400, 6, 0)
    beliefs = process.beliefs(strings)[:, 1:].reshape(-1, 4)
    token, following = one_hot(strings.ravel(), 2), process.next_token(beliefs)
    both = np.hstack([token, following])
    found = belief_regression(
        both,
        beliefs,
        groups=np.repeat(np.arange(400), 6),
        controls={TOKEN: token, NEXT_TOKEN: following, BOTH: both},
        resamples=50,
    )
    assert str(found.verdict.values) == "not informative"
    assert str(found.reason.values) == f"no better than: {BOTH}"


def test_tokens_to_come_are_sums_over_paths():
    process = P.rrxor()
    blocks = block_readouts(process, 3)
    belief = process.beliefs([[0, 1]])[0, -1]
    probability = joint(process, (0, 1)).sum()
    for length, matrix in enumerate(blocks, start=1):
        expected = [
            joint(process, (0, 1, *more)).sum() / probability
            for more in itertools.product((0, 1), repeat=length)
        ]
        expected = sorted(p for p in expected if p > 0)
        found = sorted(p for p in belief @ matrix if p > 1e-15)
        np.testing.assert_allclose(found, expected, atol=1e-13)
    # As far as the blocks are few enough.
    assert len(block_readouts(P.carry(), 5)) == 1


def test_future_says_how_far_the_next_token_reaches(table):
    """The next-token distribution gives the next token, but not all of what follows it."""
    reach = table.future_r2.sel(predictor="next-token distribution").isel(layer=0, norm=0)
    assert float(reach[0]) == pytest.approx(1, abs=1e-9)
    assert (np.diff(reach) < -0.05).all()
    assert (np.diff(table.future_information) > 0).all()
    expected = 0.0
    process, weights = P.rrxor(), table.weight.values
    following = process.next_token(np.ascontiguousarray(table.belief.values))
    mean = weights @ following
    for weight, row in zip(weights, following):
        expected += weight * sum(p * np.log(p / m) for p, m in zip(row, mean) if p > 0)
    assert float(table.future_information[0]) == pytest.approx(expected, abs=1e-12)


def test_distances_agree_as_pearson_says(table):
    """On all pairs by weight, which the drawn ones stand for."""
    beliefs, weights = table.belief.values, table.weight.values
    predicted = table.predicted.sel(layer="last", norm="after").values
    generator = np.random.default_rng(12)
    first, second = generator.choice(len(weights), (2, 20_000), p=weights)
    keep = first != second
    own, true = (
        np.linalg.norm(points[first[keep]] - points[second[keep]], axis=1)
        for points in (predicted, beliefs)
    )
    found = table.distance_r2.sel(layer="last", norm="after", space="predicted", target="beliefs")
    assert float(found) == pytest.approx(pearsonr(own, true)[0] ** 2, abs=0.03)


def clock(n_states: int) -> P.Process:
    """A coin at each step, while hidden states go round: beliefs are the time, tokens say nothing.

    The first token of each round is a certain 0, so that the time matters.
    """
    matrices = np.zeros((2, n_states, n_states))
    for state in range(n_states):
        matrices[:, state, (state + 1) % n_states] = (1, 0) if state == 0 else (0.5, 0.5)
    return P.from_matrices(matrices, "clock", start=np.eye(n_states)[1])


def test_a_net_that_holds_what_no_control_knows_is_informative():
    """Its positions are the hidden state; those of the other net are all alike."""
    process = clock(4)
    rows = np.array([[1.0, 0, 0, 0, 0, 0], [0, 1.0, 0, 0, 0, 0]])
    time = np.zeros((8, 6))
    time[np.arange(8), 2 + (np.arange(8) + 2) % 4] = 1
    logits = np.random.default_rng(0).normal(size=(6, 2))
    holds, lacks = table_net(rows, logits, time), table_net(rows, logits, 0 * time)
    found = belief_geometry(holds, process, untrained=lacks, resamples=100)
    assert list(found.norm.values) == ["before"]
    assert (found.verdict == "informative").all()
    assert float(found.r2.sel(predictor="states").min()) > 0.999
    # With itself as the other net, it is no better.
    tied = belief_geometry(holds, process, untrained=holds, resamples=100)
    assert (tied.verdict == "not informative").all()
    assert (tied.reason == "no better than: untrained net").all()


def test_controls_without_hidden_past(net):
    visible = P.visible([[0.7, 0.3], [0.4, 0.6]])
    found = belief_geometry(net, visible, resamples=50)
    assert (found.verdict == "not informative").all()
    assert found.attrs["untrained"] == "untrained random"
    constant = belief_geometry(net, P.iid(), resamples=50)
    assert (constant.verdict == "undefined").all()
    assert np.isnan(constant.r2).all()


def test_carry_beliefs_are_read_through_their_readout():
    """The regression on all 8 beliefs, read out afterwards, is that on the carry's."""
    process, readout = P.carry(3, 0.3), P.carry_readout(3)
    model = random_net(n_tokens=process.n_tokens, n_ctx=4)
    settings = {"cutoffs": (1e-6,), "resamples": 50}
    found = belief_geometry(
        model, process, strings=300, readout=readout, positions=(0, 2), **settings
    )
    rows = prefixes(process, 4, 300, 0, (0, 2))
    assert set(rows.position) == {0, 2}
    carries = rows.beliefs @ readout
    np.testing.assert_allclose(found.belief, carries)
    np.testing.assert_allclose(carries.sum(1), 1)
    control = process.next_token(rows.beliefs)
    expected = belief_regression(control, carries, rows.weights, rows.string, **settings)
    np.testing.assert_allclose(
        found.mse.sel(predictor="next-token distribution"), float(expected.mse[0]), rtol=1e-6
    )


def test_results_can_be_saved(table, tmp_path):
    table.to_netcdf(tmp_path / "result.nc")


def test_models_that_cannot_read_the_process_are_refused(net):
    for process, changes, message in (
        (P.mess3(), {}, "has 2 tokens"),
        (P.rrxor(), {"length": 7}, "reads 6"),
        (P.rrxor(), {"positions": (6,)}, "have position 6"),
        (P.rrxor(), {"readout": np.eye(3)}, "does not fit 5 hidden states"),
        (P.rrxor(), {"horizons": 0}, "horizons"),
        (P.rrxor(), {"length": 1}, "2 different strings of rrxor are too few to hold some out"),
        (P.rrxor(), {"untrained": random_net(1, n_layers=1)}, "other layers"),
    ):
        with pytest.raises(MechnumError, match=message):
            belief_geometry(net, process, **changes)


@pytest.mark.slow
def test_a_trained_net_holds_the_fractal():
    """400 steps on Mess3: the residual holds the beliefs, the untrained net of its shape less."""
    from mechnum.models.native import NativeConfig, build_native, native_bridge

    process = P.mess3()
    config = NativeConfig(2, 1, 64, 8, 256, 10, 3, 3, normalization_type="LN")
    net = build_native(config, 0).train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    for step in range(400):
        for group in optimizer.param_groups:
            group["lr"] = 1.5e-3 * (1 + np.cos(np.pi * step / 400))
        tokens = torch.from_numpy(process.sample(128, 11, step))
        logits = net(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model = mn.wrap(native_bridge(net.eval(), config, "mess3"), name="mess3")
    found = belief_geometry(model, process, strings=2000).sel(layer="last")
    assert (found.verdict == "informative").all()
    assert float(found.mse.sel(predictor="states", norm="after")) < 0.003
    assert float(found.spread.sel(predictor="shuffled beliefs").max()) < 0.1
    patched = mn.beliefs.belief_patching(model, process, layers=(1, 2)).followed.isel(step=0)
    assert (patched.sel(patch="belief") > 0.5).all()
    assert (patched.sel(patch="random") < 0.3).all()

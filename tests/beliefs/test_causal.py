"""Patched beliefs against TransformerLens' own hooks, and in a net whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mechnum.beliefs import BeliefReadout, belief_patching
from mechnum.beliefs.causal import PATCHES, draw_histories
from mechnum.beliefs.prefixes import prefixes
from mechnum.beliefs.streams import Stream, stream
from mechnum.errors import MechnumError
from mechnum.tasks import processes as P
from tests.beliefs.planted import random_net, table_net

VISIBLE = P.visible([[0.7, 0.2, 0.1], [0.2, 0.3, 0.5], [0.4, 0.1, 0.5]])


def kl(wanted: np.ndarray, logits: torch.Tensor) -> np.ndarray:
    q = logits.double().softmax(-1).numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(wanted > 0, wanted * np.log(wanted / q), 0).sum(-1)


def test_patches_are_those_of_hooks():
    """Each method but the random one by a hook on the residual of a random net of RRXOR."""
    model, process, position = random_net(), P.rrxor(), 3
    found = belief_patching(model, process, position, n=20, seed=3, cutoffs=(1e-6,))
    pairs = draw_histories(process, position, 6, 20, stream(3, Stream.HISTORIES))
    base, target = torch.from_numpy(pairs.base), torch.from_numpy(pairs.target)
    fit = prefixes(process, 6, 2000, 3, None)
    with torch.no_grad():
        _, of_base = model.tl.run_with_cache(base)
        _, of_target = model.tl.run_with_cache(target)
        _, of_fit = model.tl.run_with_cache(torch.from_numpy(fit.strings))
    names = ("blocks.0.hook_resid_pre", "blocks.1.hook_resid_pre", "blocks.1.hook_resid_post")
    for layer, hook_name in enumerate(names):
        states = of_fit[hook_name].numpy()[fit.string, fit.position]
        root = np.sqrt(fit.weights)[:, None]
        design = np.column_stack([np.ones(len(states)), states])
        coef = np.linalg.lstsq(root * design, root * fit.beliefs, rcond=None)[0][1:]
        left, sizes, _ = np.linalg.svd(coef, full_matrices=False)
        basis = torch.from_numpy(left[:, sizes > 1e-6 * sizes[0]])
        centred = fit.beliefs - fit.weights @ fit.beliefs
        written = np.linalg.pinv(root * centred, rcond=1e-9) @ (root * states)
        shift = process.beliefs(pairs.target) - process.beliefs(pairs.base)
        change = of_target[hook_name][:, position] - of_base[hook_name][:, position]
        for name, part in (
            ("none", 0 * change),
            ("belief", torch.from_numpy(shift[:, position + 1] @ written)),
            ("readout", change @ basis @ basis.T),
            ("state", change),
        ):

            def edit(value, hook, part=part):
                value = value.clone()
                value[:, position] += part
                return value

            with torch.no_grad():
                logits = model.tl.run_with_hooks(base, fwd_hooks=[(hook_name, edit)])
            np.testing.assert_allclose(
                found.kl.sel(layer=layer, patch=name),
                kl(pairs.wanted, logits[:, position:]),
                atol=1e-4,
            )
    with torch.no_grad():
        own = kl(pairs.wanted, model.tl(target)[:, position:])
    np.testing.assert_allclose(found.kl.sel(layer=0, patch="target run"), own, atol=1e-9)


def test_histories_go_on_alike_and_are_possible():
    process = P.rrxor()
    pairs = draw_histories(process, 3, 8, 60, np.random.SeedSequence(0))
    np.testing.assert_array_equal(pairs.base[:, 4:], pairs.target[:, 4:])
    before = process.beliefs(pairs.base)[:, 4]
    after = process.beliefs(pairs.target)[:, 4:]
    assert (np.abs(before - after[:, 0]).max(axis=1) > 1e-3).all()
    np.testing.assert_allclose(pairs.wanted, process.next_token(after))


def test_the_belief_carries_all_that_the_net_predicts_from():
    """Token vectors hold the belief beside nuisance of the positions; the logits read the first."""
    generator = np.random.default_rng(0)
    rows = np.zeros((3, 9))
    rows[:, :3] = np.eye(3)
    positions = np.zeros((6, 9))
    positions[:, 3:] = generator.normal(size=(6, 6))
    logits = np.zeros((9, 3))
    logits[:3] = np.log(VISIBLE.transition)
    found = belief_patching(table_net(rows, logits, positions), VISIBLE, 2, n=50)
    mean = found.kl.mean("pair")
    first = mean.isel(step=0)
    assert (first.sel(patch="none") > 0.1).all()
    for name in ("belief", "readout", "state", "target run"):
        np.testing.assert_allclose(first.sel(patch=name), 0, atol=1e-9)
    followed = found.followed.isel(step=0)
    np.testing.assert_allclose(followed.sel(patch="belief"), 1, atol=1e-6)
    assert (followed.sel(patch="random") < 0.9).all()
    np.testing.assert_array_equal(found.dimensions, 2)
    # After the next token both histories are the same.
    np.testing.assert_allclose(mean.isel(step=slice(1, None)), 0, atol=1e-9)
    assert np.isnan(found.followed.isel(step=slice(1, None))).all()


def test_what_is_not_the_belief_moves_nothing():
    """A net that reads directions without beliefs in them: only the whole state moves it."""
    rows = np.array([[1.0, 0, 0.3, 0], [1.0, 0, -0.3, 0], [0, 1.0, 0, 0]])
    process = P.from_matrices(
        [
            [[0.4, 0.0], [0.1, 0.1]],
            [[0.4, 0.0], [0.1, 0.1]],
            [[0.0, 0.2], [0.0, 0.6]],
        ]
    )
    # Tokens 0 and 1 are alike to the process; the logits read what tells them apart.
    logits = np.zeros((4, 3))
    logits[2] = 5, -5, 0
    found = belief_patching(table_net(rows, logits, np.zeros((6, 4))), process, 2, n=80)
    at_end = found.kl.isel(layer=-1, step=0)
    none, belief, state = (at_end.sel(patch=name) for name in ("none", "belief", "state"))
    assert float(abs(belief - none).max()) < 0.05 * float(abs(state - none).max())


def test_seeds_and_refusals():
    model = random_net()
    first, same = (belief_patching(model, P.rrxor(), n=10, seed=1) for _ in range(2))
    assert first.identical(same)
    assert tuple(first.patch.values) == PATCHES
    for process, changes, message in (
        (P.iid(), {}, "different beliefs"),
        (P.rrxor(), {"position": 6}, "no position 6"),
        (P.rrxor(), {"layers": (3,)}, "use 0 to 2"),
        (P.rrxor(), {"layers": ()}, "use 0 to 2"),
        (P.rrxor(), {"n": 0}, "n is 0"),
        (P.mess3(), {}, "has 2 tokens"),
    ):
        with pytest.raises(MechnumError, match=message):
            belief_patching(model, process, **changes)


def test_layers_that_hold_no_belief_have_no_subspace():
    """All tokens have one vector: nothing is read, and the belief patch does nothing."""
    net = table_net(np.ones((3, 4)), np.ones((4, 3)), np.zeros((6, 4)))
    found = belief_patching(net, VISIBLE, 2, n=10)
    np.testing.assert_array_equal(found.dimensions, 0)
    for name in ("belief", "readout", "random"):
        np.testing.assert_allclose(found.kl.sel(patch=name), found.kl.sel(patch="none"), atol=1e-12)


def test_subspace_of_a_constant_is_empty():
    readout = BeliefReadout().fit(np.ones((5, 3)), np.eye(5)[:, :2])
    assert len(readout.subspace()) == 0

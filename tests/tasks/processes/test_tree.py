"""The mixed-state tree against all strings one by one, and the published counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from mechnum.errors import MechnumError
from mechnum.tasks import processes as P
from mechnum.tasks.processes.tree import merged
from tests.tasks.processes.paths import joint, strings


def test_published_counts_of_rrxor():
    tree = P.mixed_state_tree(P.rrxor(), 11)
    assert tree.sizes["mixed_state"] == 36
    assert int(tree.first_depth.max()) == 6
    assert int(tree.strings.sum()) == 1723
    assert int(tree.strings[tree.depth == 10].sum()) == 436
    np.testing.assert_allclose(tree.belief.sum("state"), 1, atol=1e-12)


def test_distances_of_rrxor_beliefs_say_little_of_the_next_token():
    """The squared correlation that the published .31 of a net, whose states are near to beliefs,
    is to be compared with."""
    process = P.rrxor()
    level, found = [process.start], []
    for _ in range(10):
        level = [state @ matrix for state in level for matrix in process.matrices]
        level = [state / state.sum() for state in level if state.sum() > 0]
        found += level
    states = np.array(found)
    assert len(states) == 1046
    correlation = np.corrcoef(pdist(states), pdist(states @ process.emission))[0, 1]
    assert correlation**2 == pytest.approx(0.313, abs=5e-4)


@pytest.mark.parametrize("process", [P.rrxor(), P.mess3(0.15, 0.6), P.even()], ids=str)
def test_tree_has_all_strings(process):
    """Beliefs, probabilities and numbers of strings of one depth, from every string itself."""
    depth = 4
    tree = P.mixed_state_tree(process, depth)
    found = {}
    for node in np.flatnonzero(tree.depth == depth):
        belief = tree.belief[int(tree.node_state[node])].values
        found[tuple(belief.round(6) + 0.0)] = (
            float(tree.probability[node]),
            int(tree.strings[node]),
        )
    expected = {}
    for string in strings(process, depth):
        own = joint(process, string)
        if own.sum() > 0:
            key = tuple((own / own.sum()).round(6) + 0.0)
            probability, n = expected.get(key, (0.0, 0))
            expected[key] = (probability + own.sum(), n + 1)
    assert found.keys() == expected.keys()
    for key, (probability, n) in expected.items():
        assert found[key] == (pytest.approx(probability, abs=1e-12), n)


def test_edges_lead_where_updates_lead():
    process = P.rrxor()
    tree = P.mixed_state_tree(process, 8)
    for state in range(tree.sizes["mixed_state"]):
        belief = tree.belief[state].values
        np.testing.assert_allclose(tree.next_token[state], process.next_token(belief))
        for token in range(2):
            joint_after = belief @ process.matrices[token]
            to = int(tree.to[state, token])
            if joint_after.sum() == 0:
                assert to == -1
            else:
                np.testing.assert_allclose(
                    tree.belief[to], joint_after / joint_after.sum(), atol=1e-8
                )


def test_pruned_trees_keep_what_is_likely():
    process = P.mess3()
    whole = P.mixed_state_tree(process, 6)
    cut = P.mixed_state_tree(process, 6, min_probability=1e-3)
    assert cut.sizes["node"] < whole.sizes["node"] / 2
    assert float(cut.probability.min()) >= 1e-3
    kept = cut.probability.groupby(cut.depth).sum()
    assert (kept > 0.7).all()
    assert float(kept[-1]) < 1
    with pytest.raises(MechnumError, match="lower min_probability"):
        P.mixed_state_tree(process, 6, min_probability=0.9)
    with pytest.raises(MechnumError, match="give numbers from 0"):
        P.mixed_state_tree(process, -1)


def test_tolerances_below_rounding_are_none():
    """Their grid has more cells than integers have."""
    process = P.rrxor()
    found = P.mixed_state_tree(process, 5, tolerance=1e-300)
    assert found.equals(P.mixed_state_tree(process, 5, tolerance=0.0))


def test_borders_of_the_grid_part_nothing():
    """Points 10⁻¹² apart are one wherever they lie, points 10⁻³ apart are two."""
    near = np.array([0.5e-9 - 1e-13, 0.5e-9 + 1e-13, 0.3, 0.3 + 1e-12, 0.301, 0.3])
    points = np.column_stack([near, 1 - near])
    np.testing.assert_array_equal(merged(points, 1e-9), [0, 0, 1, 1, 2, 1])
    np.testing.assert_array_equal(merged(points, 0.0), [0, 1, 2, 3, 4, 2])


def test_coarse_merging_averages_by_probability():
    """With one node left, its belief is the stationary law, and the tree is a chain."""
    tree = P.mixed_state_tree(P.mess3(), 5, tolerance=2.0)
    assert tree.sizes["node"] == 6
    np.testing.assert_allclose(tree.belief, 1 / 3, atol=1e-12)
    np.testing.assert_array_equal(tree.strings, 3 ** np.arange(6))

"""Classes of heads from effects that were made up, against loops over resamples."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.helix.clock.classes import CLASSES, classes_at, head_classes
from mechnum.intervals import RESAMPLES

CONTENT = ("a,b", "a+b", "a,b,a+b", "mean", "permuted")


def made(means: dict[str, tuple[float, ...]], n_pairs: int = 40, noise: float = 0.0, seed: int = 0):
    """Effects with these means of TE, DE and each content, and noise of each pair."""
    rng = np.random.default_rng(seed)
    table = np.array(list(means.values()))
    values = table + noise * rng.normal(size=(n_pairs, *table.shape))
    return xr.Dataset(
        {
            "total": (("pair", "node"), values[:, :, 0]),
            "direct": (("pair", "node"), values[:, :, 1]),
            "kept": (("pair", "node", "content"), values[:, :, 2:]),
            # What the paper uses: here, twice as much above the mean.
            "fitted": (("pair", "node", "content"), 2 * values[:, :, 2:] - 2),
        },
        {"node": list(means), "content": list(CONTENT)},
    )


#             TE, DE, a,b, a+b, a,b,a+b, mean, permuted
PURE = {
    "head 0.0": (4.0, 0.0, 3.0, 1.0, 3.0, 1.0, 1.0),
    "head 0.1": (4.0, 4.0, 1.0, 3.0, 3.0, 1.0, 1.0),
    "head 0.2": (4.0, 2.0, 2.0, 2.0, 3.0, 1.0, 1.0),
    "head 0.3": (4.0, 1.0, 2.5, 2.0, 3.0, 1.0, 1.0),
}


def test_formulas():
    found = head_classes(made(PURE), n_mixed=1)
    np.testing.assert_allclose(found["c_ab"], [1, 0, 0.5 * 0.5, 0.75 * 0.75], atol=1e-12)
    np.testing.assert_allclose(found["c_sum"], [0, 1, 0.5 * 0.5, 0.25 * 0.5], atol=1e-12)
    assert found["class"].values.tolist() == ["a,b", "a+b", "mixed", "a,b"]
    assert (found["class_share"].max("class_name") == 1).all()
    np.testing.assert_allclose(found["direct_share"], [0, 1, 0.5, 0.25])
    np.testing.assert_allclose(found["published_c_ab"], found["c_ab"], atol=1e-12)
    np.testing.assert_allclose(found["published_c_sum"], found["c_sum"], atol=1e-12)
    for end in ("_low", "_high"):
        np.testing.assert_allclose(found[f"c_ab{end}"], found["c_ab"], atol=1e-12)


def test_ratios_are_cut_and_other_numbers_of_mixed_heads_are_another_class():
    means = PURE | {"head 1.0": (4.0, -2.0, 9.0, 0.5, 3.0, 1.0, 1.0)}
    found = head_classes(made(means), n_mixed=0)
    assert found["c_ab"].values[-1] == 1
    assert found["c_sum"].values[-1] == 0
    assert classes_at(found, 0)[2] == "a,b" or classes_at(found, 0)[2] == "a+b"
    assert classes_at(found, 2).count("mixed") == 2
    assert classes_at(found, 2)[2:4] == ["mixed", "mixed"]
    assert classes_at(found, 5) == ["mixed"] * 5


@pytest.mark.parametrize(
    ("row", "status"),
    [
        ((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), "its total effect is not above 0"),
        ((-1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0), "its total effect is not above 0"),
        ((4.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0), "no more than its mean output"),
        ((4.0, 1.0, 2.0, 2.0, 2.0, 1.0, 2.0), "no more than a fit to shuffled numbers"),
    ],
)
def test_a_vanishing_denominator_is_a_status_and_no_number(row, status):
    found = head_classes(made({"head 0.0": PURE["head 0.0"], "head 0.1": row}), n_mixed=1)
    own = found.sel(node="head 0.1")
    assert status in str(own["status"].values)
    assert own["class"] == "unclear"
    assert own["class_share"].sel(class_name="unclear") == 1
    for name in ("c_ab", "c_sum", "c_ab_low", "c_sum_high", "direct_share", "confidence"):
        assert np.isnan(own[name])
    # It takes no place among the mixed ones.
    assert found["class"].values[0] == "mixed"


def test_shares_of_classes_are_those_of_a_loop_over_resamples():
    effects = made(PURE | {"head 1.1": (4.0, 1.8, 2.2, 2.0, 3.0, 1.0, 1.0)}, noise=1.5, seed=3)
    found = head_classes(effects, n_mixed=2, seed=4)
    assert (found["status"] == "measured").all()
    rng = np.random.default_rng(11)
    counts = np.zeros((5, len(CLASSES)))
    c_ab = []
    total, direct, kept = (effects[name].values for name in ("total", "direct", "kept"))
    for _ in range(RESAMPLES):
        pairs = rng.integers(0, 40, 40)
        gap, own = np.zeros(5), np.zeros(5)
        for node in range(5):
            te, de = total[pairs, node].mean(), direct[pairs, node].mean()
            ab, s, full, mean = (kept[pairs, node, at].mean() for at in range(4))
            share = min(max(de / te, 0), 1)
            own[node] = (1 - share) * min(max((ab - mean) / (full - mean), 0), 1)
            gap[node] = own[node] - share * min(max((s - mean) / (full - mean), 0), 1)
        c_ab.append(own)
        for node in range(5):
            if node in np.argsort(np.abs(gap))[:2]:
                counts[node, CLASSES.index("mixed")] += 1
            else:
                counts[node, CLASSES.index("a,b" if gap[node] > 0 else "a+b")] += 1
    # Other draws: within four standard errors of a share of 2000.
    np.testing.assert_allclose(found["class_share"], counts / RESAMPLES, atol=4 * 0.5 / 44)
    np.testing.assert_allclose(found["c_ab_low"], np.quantile(c_ab, 0.025, axis=0), atol=0.03)
    np.testing.assert_allclose(found["c_ab_high"], np.quantile(c_ab, 0.975, axis=0), atol=0.03)


def test_a_head_between_the_classes_is_unsure_and_seeds_are_kept():
    between = {"head 0.0": (4.0, 2.0, 2.0, 2.0, 3.0, 1.0, 1.0)}
    shares = []
    for seed in range(6):
        found = head_classes(made(between, noise=0.8, seed=seed), n_mixed=0, seed=1)
        shares.append(float(found["class_share"].sel(class_name="a,b").item()))
        again = head_classes(made(between, noise=0.8, seed=seed), n_mixed=0, seed=1)
        xr.testing.assert_identical(found, again)
    assert 0.1 < np.mean(shares) < 0.9


def test_refusals():
    with pytest.raises(MechnumError, match="give 0 or more"):
        head_classes(made(PURE), n_mixed=-1)
    with pytest.raises(MechnumError, match="give 2 or more"):
        head_classes(made(PURE, n_pairs=1))

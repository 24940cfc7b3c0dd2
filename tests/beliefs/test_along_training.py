"""Beliefs along training are those of each net by itself, on the same strings."""

from __future__ import annotations

import numpy as np
import pytest

from mechnum.beliefs import belief_geometry, belief_progress
from mechnum.errors import MechnumError
from mechnum.tasks import processes as P
from tests.beliefs.planted import random_net


@pytest.mark.parametrize("readout", [None, np.eye(5)[:, :1] + np.eye(5)[:, 3:4]])
def test_each_step_is_the_net_by_itself(readout):
    nets = {0: random_net(1), 50: random_net(2)}
    shared = {"strings": 40, "readout": readout, "folds": 3, "seed": 4}
    found = belief_progress(nets.items(), P.rrxor(), **shared)
    assert found["step"].values.tolist() == [0, 50]
    for step, net in nets.items():
        alone = belief_geometry(net, P.rrxor(), **shared, shuffles=1, resamples=5, horizons=1)
        at = found.sel(step=step)
        want = alone.sel(layer=["last", "all"], predictor="states")
        for name in ("mse", "r2"):
            np.testing.assert_allclose(at[name], want[name], rtol=1e-9)
        np.testing.assert_allclose(at["predicted"], want["predicted"], atol=1e-12)
    for name in ("belief", "weight", "position"):
        np.testing.assert_array_equal(found[name], alone[name])
    assert float(found["variance"]) == pytest.approx(float(alone["variance"]))


def test_nets_of_different_shapes_and_no_nets_are_refused():
    with pytest.raises(MechnumError, match="there are no snapshots: give"):
        belief_progress([], P.rrxor())
    nets = [(0, random_net(0)), (1, random_net(0, n_ctx=5))]
    with pytest.raises(MechnumError, match="another shape than the nets before it"):
        belief_progress(nets, P.rrxor(), strings=20)


def test_beliefs_that_never_change_have_no_r2():
    found = belief_progress([(0, random_net(0))], P.iid(), strings=20)
    assert found["r2"].isnull().all()
    assert float(found["mse"].max()) < 1e-20

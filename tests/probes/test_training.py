"""The training loop on problems whose answers are known by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from mechnum.errors import InvalidInput, MechnumError
from mechnum.probes.training import CHECK_EVERY, Schedule, Score, cross_entropy, train
from mechnum.progress import reported_to


class Point(nn.Module):
    def __init__(self, at: float) -> None:
        super().__init__()
        self.at = nn.Parameter(torch.tensor(at))


def run(point, schedule, check, n_rows=10, loss=None, seed=0):
    generator = np.random.default_rng(seed)
    loss = loss or (lambda rows: (point.at - 3) ** 2)
    return train(point, loss, check, n_rows, schedule, generator, "a point")


def test_the_best_state_is_a_copy_that_later_steps_do_not_change():
    """The point moves from 0 towards 3, and the held-out score is best when it passes 1."""
    trail, point = [], Point(0.0)

    def check():
        trail.append(point.at.item())
        return Score(0.0, -abs(point.at.item() - 1))

    schedule = Schedule(600, None, 5e-3, False, None)
    checks = run(point, schedule, check)
    assert len(checks) == len(trail) == 600 // CHECK_EVERY
    best = int(np.argmin(np.abs(np.array(trail) - 1)))
    assert trail[-1] > 2
    assert point.at.item() == trail[best]
    assert abs(trail[best] - 1) < 0.2


def test_patience_counts_steps_and_accuracy_goes_before_likelihood():
    scores = iter([Score(0.5, -1.0), Score(0.5, -0.9), Score(0.4, -0.1), Score(0.5, -1.0)])
    checks = run(Point(0.0), Schedule(10_000, None, 1e-3, False, 100), lambda: next(scores))
    assert [check.step for check in checks] == [50, 100, 150, 200]


def test_without_held_out_numbers_the_last_state_stays():
    point = Point(0.0)
    assert run(point, Schedule(1000, None, 2e-2, True, 100), None) == []
    assert abs(point.at.item() - 3) < 1e-3


def test_the_rate_falls_to_zero_linearly():
    """Under a constant gradient Adam's step is the rate, so that the way is their sum."""
    for decay, way in ((True, 0.01 * 101 / 2), (False, 0.01 * 100)):
        point = Point(0.0)
        run(point, Schedule(100, None, 0.01, decay, None), None, loss=lambda rows, p=point: p.at)
        assert abs(-point.at.item() - way) < 1e-5


def test_batches_have_each_row_once_before_any_comes_again():
    seen, point = [], Point(0.0)

    def loss(rows):
        seen.append(rows.tolist())
        return point.at**2

    run(point, Schedule(9, 3, 1e-3, False, None), None, n_rows=10, loss=loss)
    assert {len(rows) for rows in seen} == {3}
    for start in (0, 3, 6):
        assert len({row for rows in seen[start : start + 3] for row in rows}) == 9
    again, other = (seen.copy() for _ in range(2))
    seen.clear()
    run(point, Schedule(9, 3, 1e-3, False, None), None, n_rows=10, loss=loss)
    assert seen == again
    seen.clear()
    run(point, Schedule(9, 3, 1e-3, False, None), None, n_rows=10, loss=loss, seed=1)
    assert seen != other


def test_a_loss_that_is_no_number_stops_in_one_line():
    point = Point(0.0)
    with pytest.raises(MechnumError, match="nan after 50 steps: lower learning_rate"):
        run(
            point,
            Schedule(500, None, 0.1, False, None),
            None,
            loss=lambda rows: torch.sqrt(point.at - 5),
        )


def test_it_trains_where_the_caller_has_switched_gradients_off():
    for mode in (torch.no_grad, torch.inference_mode):
        point = Point(0.0)
        with mode():
            run(point, Schedule(10, None, 0.1, False, None), None)
        assert point.at.item() > 0.5


def test_progress_is_told_to_the_end():
    told = []
    with reported_to(lambda *news: told.append(news)):
        run(Point(0.0), Schedule(3, None, 0.1, False, None), None)
    assert told[-1] == ("a point", 3, 3)


def test_cross_entropy_is_torchs_and_keeps_the_gradient_of_sure_mistakes():
    generator = torch.Generator().manual_seed(0)
    logits = 30 * torch.randn(64, 40, generator=generator, dtype=torch.float64)
    targets = torch.randint(0, 40, (64,), generator=generator)
    assert (logits.gather(1, targets[:, None])[:, 0] < logits.amax(1) - 60).any()
    found, known = (logits.clone().requires_grad_() for _ in range(2))
    ours, theirs = cross_entropy(found, targets), nn.functional.cross_entropy(known, targets)
    torch.testing.assert_close(ours, theirs)
    ours.backward()
    theirs.backward()
    torch.testing.assert_close(found.grad, known.grad, rtol=0, atol=1e-15)
    # Nothing is left that a CPU computes with slowly.
    single = logits.float().requires_grad_()
    cross_entropy(single, targets).backward()
    sizes = single.grad.abs()
    assert not ((sizes > 0) & (sizes < torch.finfo(torch.float32).tiny)).any()


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 0},
        {"batch_size": 0},
        {"patience": -1},
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
    ],
)
def test_impossible_schedules_are_refused(wrong):
    given = {"steps": 1, "batch_size": 1, "learning_rate": 0.1, "decay": True, "patience": 1}
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        Schedule(**{**given, **wrong})

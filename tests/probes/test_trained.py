"""What all trained probes do: held-out numbers unseen, one seed, the best state, any device."""

from __future__ import annotations

import pickle  # noqa: TID251

import numpy as np
import pytest
import torch
from sklearn.base import clone

from mechnum.errors import InvalidInput, MechnumError
from mechnum.probes import BinaryProbe, ParamSinProbe, SinProbe, trained, training, value_split

from .planted import circles

NUMBERS = np.arange(100)
STATES = circles(NUMBERS, (10, 100), 16)
QUICK = {"steps": 100, "batch_size": 64}
PROBES = [
    ParamSinProbe(50, **QUICK),
    SinProbe(20, **QUICK),
    BinaryProbe(**QUICK),
]


def named(probe):
    return type(probe).__name__


def same_state(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("coef_", "intercept_", "codes_")
    )


@pytest.mark.parametrize("probe", PROBES, ids=named)
def test_the_loss_never_sees_a_held_out_number(probe, monkeypatch):
    """Neither as a target nor as a column: columns are those of the training numbers in order."""
    test = value_split(NUMBERS, (0.9, 0.1), 3)[1]
    fit = np.setdiff1d(NUMBERS, test)
    columns, targets, features = set(), set(), []
    real_loss = training.cross_entropy

    def loss(logits, wanted):
        if torch.is_grad_enabled():
            columns.add(logits.shape[1])
            targets.update(wanted.tolist())
        return real_loss(logits, wanted)

    monkeypatch.setattr(trained, "cross_entropy", loss)
    fitted = clone(probe).set_params(numbers=range(100))
    code = fitted._code

    def recording(d, generator):
        made = code(d, generator)
        real = made.features
        made.features = lambda numbers: features.append(numbers) or real(numbers)
        return made

    fitted._code = recording
    fitted.fit(STATES[fit], fit)
    held = fitted.validation_numbers_
    assert len(held) == round(0.05 * len(fit))
    known = np.setdiff1d(fit, held)
    assert columns == {len(known)}
    assert targets == set(range(len(known)))
    # The first codes made are those of the loss, the second those of reading.
    np.testing.assert_array_equal(features[0], known)
    np.testing.assert_array_equal(features[1], NUMBERS)


@pytest.mark.parametrize("probe", PROBES, ids=named)
def test_rows_of_held_out_numbers_change_nothing_but_the_moment_to_stop(probe):
    """A planted answer in their states would be learnt, were they trained on."""
    fitted = clone(probe).set_params(patience=None).fit(STATES, NUMBERS)
    changed = STATES.copy()
    changed[fitted.validation_numbers_] = 1e3
    other = clone(probe).set_params(patience=None, validation_share=0.05).fit(changed, NUMBERS)
    np.testing.assert_array_equal(other.validation_numbers_, fitted.validation_numbers_)
    last = {one.step for one in (*fitted.history_, *other.history_)}
    assert last == {50, 100}
    if fitted.best_step_ == other.best_step_:
        assert same_state(fitted, other)


@pytest.mark.parametrize("probe", PROBES, ids=named)
def test_the_seed_alone_decides_and_global_generators_stay(probe):
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()
    first = clone(probe).fit(STATES, NUMBERS)
    torch.rand(3)
    np.random.default_rng().random()
    torch.set_rng_state(torch_state)
    again = clone(probe).fit(STATES, NUMBERS)
    other = clone(probe).set_params(seed=1).fit(STATES, NUMBERS)
    assert torch.equal(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)
    assert same_state(first, again)
    assert not same_state(first, other)
    assert not np.array_equal(first.validation_numbers_, other.validation_numbers_)


def test_training_on_after_the_best_step_does_not_change_the_kept_state():
    """A probe that stopped at its best step has the state that a longer run keeps."""
    noisy = circles(NUMBERS, (10, 100), 16, noise=0.4)
    given = {"H": 50, "decay": False, "patience": None, "l1": 0.0, "l2": 0.0}
    long = ParamSinProbe(steps=500, **given).fit(noisy, NUMBERS)
    assert 0 < long.best_step_ < 500
    short = ParamSinProbe(steps=long.best_step_, **given).fit(noisy, NUMBERS)
    last = ParamSinProbe(steps=500, validation_share=0.0, **given).fit(noisy, NUMBERS)
    assert same_state(long, short)
    assert not same_state(long, last)
    assert last.best_step_ == 500
    assert len(last.validation_numbers_) == 0


@pytest.mark.parametrize("probe", PROBES, ids=named)
def test_logits_are_the_readings_times_the_codes(probe):
    fitted = clone(probe).fit(STATES, NUMBERS)
    logits = (STATES @ fitted.coef_.T + fitted.intercept_) @ fitted.codes_
    np.testing.assert_allclose(fitted.decision_function(STATES), logits, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(fitted.predict(STATES), NUMBERS[logits.argmax(1)])
    proba = np.exp(logits - logits.max(1, keepdims=True))
    proba /= proba.sum(1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(STATES), proba, atol=1e-9)
    assert fitted.score(STATES, NUMBERS) == np.mean(logits.argmax(1) == NUMBERS)
    kept = next(one for one in fitted.history_ if one.step == fitted.best_step_)
    held = fitted.validation_numbers_
    assert kept.score.accuracy == fitted.score(STATES[held], held)
    likelihood = np.log(proba[held, held]).mean()
    assert abs(kept.score.log_likelihood - likelihood) < 1e-3


@pytest.mark.parametrize("probe", PROBES, ids=named)
def test_pickled_and_cloned(probe):
    fitted = clone(probe).fit(STATES, NUMBERS)
    back = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    np.testing.assert_array_equal(back.predict_proba(STATES), fitted.predict_proba(STATES))
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    assert not hasattr(fresh, "coef_")


def test_double_precision_starts_the_same_and_says_the_same():
    single, double = (
        ParamSinProbe(50, dtype=dtype, **QUICK).fit(STATES, NUMBERS)
        for dtype in ("float32", "float64")
    )
    np.testing.assert_allclose(single.codes_, double.codes_, atol=0.01)
    np.testing.assert_allclose(single.coef_, double.coef_, atol=0.05)


def test_the_scale_of_the_states_does_not_matter_where_they_are_standardised():
    scaled = STATES * np.geomspace(1e-3, 1e3, 16) + 5
    one = ParamSinProbe(50, dtype="float64", **QUICK).fit(STATES, NUMBERS)
    other = ParamSinProbe(50, dtype="float64", **QUICK).fit(scaled, NUMBERS)
    np.testing.assert_allclose(
        one.decision_function(STATES), other.decision_function(scaled), atol=1e-5
    )
    # As the paper has it, the states are taken as they are.
    plain = ParamSinProbe(50, standardise=False, **QUICK).fit(STATES, NUMBERS)
    assert not np.allclose(plain.coef_, one.coef_, atol=0.01)


def test_a_dimension_that_never_changes_is_left_alone():
    padded = np.column_stack([STATES, np.full(100, 7.0)])
    fitted = ParamSinProbe(50, **QUICK).fit(padded, NUMBERS)
    assert np.isfinite(fitted.decision_function(padded)).all()


def test_repeated_numbers_and_holes():
    """A third of the numbers is missing and the others repeat; the missing ones are read."""
    holes = np.random.default_rng(2).choice(NUMBERS, 33, replace=False)
    shown = np.repeat(np.setdiff1d(NUMBERS, holes), 3)
    states = circles(shown, (10, 100), 16)
    asked = ParamSinProbe(100, l1=3e-2, numbers=range(100), steps=300).fit(states, shown)
    np.testing.assert_array_equal(asked.classes_, NUMBERS)
    assert asked.score(STATES[holes], holes) > 0.9
    only = ParamSinProbe(50, numbers=np.unique(shown), **QUICK).fit(states, shown)
    assert set(only.predict(STATES)) <= set(shown)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"dtype": "float16"}, "dtype 'float16' is not supported"),
        ({"device": "abacus"}, "device 'abacus' is not there"),
        ({"validation_share": 1.0}, "validation_share is 1.0"),
        ({"seed": -1}, "seed is -1"),
        ({"steps": 0}, "steps is 0"),
        ({"H": 0}, "H is 0"),
        ({"l1": -1.0}, "l1 is -1.0"),
        ({"l2": float("nan")}, "l2 is nan"),
        ({"amplitude": 0.0}, "amplitude is 0.0"),
        ({"learning_rate": 1e38, "steps": 60}, "the loss of training ParamSinProbe"),
        ({"numbers": range(50)}, "50 is not among the 50 numbers"),
    ],
)
def test_impossible_parameters_are_refused_in_one_line(wrong, message):
    with pytest.raises(MechnumError, match=message) as caught:
        ParamSinProbe(**{"H": 20, "steps": 5, **wrong}).fit(STATES, NUMBERS)
    assert "\n" not in str(caught.value)


def test_the_sinusoidal_and_binary_probes_refuse_too():
    with pytest.raises(InvalidInput, match="latent_size is 0"):
        SinProbe(0).fit(STATES, NUMBERS)
    with pytest.raises(InvalidInput, match="code_size is 0"):
        SinProbe(code_size=0).fit(STATES, NUMBERS)
    with pytest.raises(InvalidInput, match="l1 is -1"):
        SinProbe(l1=-1.0).fit(STATES, NUMBERS)

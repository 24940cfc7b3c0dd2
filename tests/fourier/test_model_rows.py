"""Rows of numbers against the models' own tensors and plain module hooks."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest
import torch
import xarray as xr

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.fourier import (
    amplitudes,
    embedding_rows,
    logit_rows,
    neuron_rows,
    number_rows,
    spectrum,
    spectrum_test,
    state_rows,
    token_counts,
    unembedding_rows,
)
from mechnum.tasks import number_prompts
from tests import fixtures
from tests.tasks.small_tokenizers import digit_level, word_level


def wrapped(tokenizer=None, **shape):
    """A GPT-J of three layers that reads numbers through a tokenizer of the test's choice."""
    tokenizer = tokenizer or word_level(range(50))
    hf = fixtures.gptj(**shape)
    hf.resize_token_embeddings(400)
    return hf, mn.wrap(fixtures.perturbed(hf), tokenizer=tokenizer, name="tiny")


@pytest.fixture(scope="module")
def tiny():
    return wrapped()


def ids_of(tokenizer, numbers) -> list[int]:
    return [tokenizer.convert_tokens_to_ids(str(n)) for n in numbers]


def test_matrices_are_rows_of_the_models_tensors(tiny):
    hf, model = tiny
    numbers = [5, 3, 40]
    ids = ids_of(model.tokenizer, numbers)
    rows = embedding_rows(model, numbers)
    assert rows.dims == ("number", "dimension")
    assert rows["number"].values.tolist() == numbers
    np.testing.assert_array_equal(rows, hf.transformer.wte.weight[ids].detach())
    np.testing.assert_array_equal(unembedding_rows(model, numbers), hf.lm_head.weight[ids].detach())
    assert rows.attrs["of"] == "embedding"
    assert "unembedding as trained" in unembedding_rows(model, numbers).attrs["processing"]


@pytest.mark.parametrize(("of", "layer"), [("resid", 1), ("attn_out", 2), ("mlp_out", 0)])
def test_states_are_those_that_module_hooks_see(tiny, of, layer):
    hf, model = tiny
    rows = state_rows(model, range(8), of, template="1+{n}=")
    attention, mlp = fixtures.submodules(hf, layer)
    module = {"resid": hf.transformer.h[layer], "attn_out": attention, "mlp_out": mlp}[of]
    seen = []
    handle = module.register_forward_hook(
        lambda _m, _i, out: seen.append(out[0] if isinstance(out, tuple) else out)
    )
    tokens = model.tokenizer([f"1+{n}=" for n in range(8)], return_tensors="pt")["input_ids"]
    with torch.no_grad():
        hf(tokens)
    handle.remove()
    np.testing.assert_allclose(rows.sel(layer=layer), seen[0][:, 2], atol=2e-5)
    assert rows["layer"].values.tolist() == ([-1, 0, 1, 2] if of == "resid" else [0, 1, 2])


def test_the_first_residual_is_the_embedding_and_heads_have_a_dimension(tiny):
    _, model = tiny
    np.testing.assert_array_equal(
        state_rows(model, range(6)).sel(layer=-1), embedding_rows(model, range(6))
    )
    z = state_rows(model, range(6), "z")
    assert z.dims == ("layer", "head", "number", "dimension")
    assert spectrum(z)["share"].dims == ("layer", "head", "frequency")


def test_split_numbers_are_read_at_their_last_digit_in_the_order_asked_for():
    hf, model = wrapped(digit_level())
    numbers = [12, 3, 340, 5]
    with pytest.warns(UserWarning, match="2 of the 4 numbers stand at the first position"):
        rows = state_rows(model, numbers, digits="last")
    assert rows["number"].values.tolist() == numbers
    assert rows["pieces"].values.tolist() == [2, 1, 3, 1]
    assert json.loads(rows.attrs["numbers_at"]) == {"0": 2, "1": 1, "2": 1}
    for number in numbers:
        ids = model.tokenizer(str(number), return_tensors="pt")["input_ids"]
        with torch.no_grad():
            states = hf(ids, output_hidden_states=True).hidden_states
        for layer in (-1, 0, 1):  # the last of transformers' states is behind the final norm
            own = rows.sel(number=number, layer=layer)
            np.testing.assert_allclose(own, states[layer + 1][0, -1], atol=2e-5)
    with pytest.raises(MechnumError, match="12, 340 are not one token for tiny"):
        embedding_rows(model, numbers)


def test_neurons_and_logits_are_products_of_the_models_tensors(tiny):
    hf, model = tiny
    numbers = range(10)
    ids = ids_of(model.tokenizer, numbers)
    rows = neuron_rows(model, 1, numbers)
    W_out = hf.transformer.h[1].mlp.fc_out.weight.detach().numpy()
    W_U = hf.lm_head.weight[ids].detach().numpy()
    np.testing.assert_allclose(rows, (W_U @ W_out).T, atol=1e-5)
    assert spectrum(rows)["share"].dims == ("neuron", "frequency")
    prompts = number_prompts(model, range(7), "2+{n}=")
    logits = logit_rows(model, prompts, numbers)
    tokens = model.tokenizer([f"2+{n}=" for n in range(7)], return_tensors="pt")["input_ids"]
    with torch.no_grad():
        expected = hf(tokens).logits[:, -1, ids].T
    np.testing.assert_allclose(logits, expected, atol=1e-4)
    assert spectrum(logits).sizes["frequency"] == 5
    with pytest.raises(MechnumError, match="has no layer 3: give 0 to 2"):
        neuron_rows(model, 3)


def test_centring_changes_the_constant_alone():
    """Number-token logits of a centred unembedding: only DC differs."""
    _, model = wrapped()
    rows = unembedding_rows(model, range(40))
    centred = rows - model.decoder.weights.W_U.mean(dim=1).numpy()
    raw, other = spectrum(rows), spectrum(centred)
    np.testing.assert_allclose(raw["power"], other["power"], rtol=1e-5)
    assert abs(float(raw["dc"]) - float(other["dc"])) > 1e-3


def test_nets_without_tokenizer_or_mlp_or_enough_outputs():
    model = mn.load("clock-113")
    rows = embedding_rows(model, range(113))
    np.testing.assert_array_equal(rows, model.decoder.weights.W_E[:113].numpy())
    assert number_rows(model, range(113), "unembedding").sizes == {"number": 113, "dimension": 128}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: embedding_rows(m, [60]), "60 have no token"),
        (lambda m: state_rows(m, [1, 2], position="b"), "no position 'b'"),
        (lambda m: state_rows(m, [1, 2], "resid_mid"), "resid_mid does not exist in a parallel"),
    ],
)
def test_bad_requests_are_refused(tiny, call, message):
    with pytest.raises(MechnumError, match=message):
        call(tiny[1])


def test_unknown_rows_are_refused(tiny, unchecked):
    with pytest.raises(MechnumError, match="no rows of 'brain': use one of embedding, unemb"):
        number_rows(tiny[1], range(5), "brain")


def test_counts_are_read_and_bad_tables_refused(tmp_path):
    def table(text: str):
        path = tmp_path / "counts.csv"
        path.write_text(text, encoding="utf-8")
        return token_counts(path)

    found = table("number,count\n10,7\n-2,0\n")
    assert found["number"].values.tolist() == [10, -2]
    assert found.values.tolist() == [7, 0]
    assert found.attrs["of"] == "counts in counts.csv"
    for text, message in (
        ("", "has no rows with number and count"),
        ("n,count\n1,2\n", "has no rows with number and count"),
        ("number,count\n1,2.5\n", "holds a number or count that is no integer"),
        ("number,count\n1\n", "holds a number or count that is no integer"),
        ("number,count\n1,-2\n", "counts 1 less than 0 times"),
        ("number,count\n1,2\n1,3\n", "the number 1 is there twice"),
    ):
        with pytest.raises(MechnumError, match=message):
            table(text)
    with pytest.raises(MechnumError, match=r"none.csv cannot be read \(No such file"):
        token_counts(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00number")
    with pytest.raises(MechnumError, match="cannot be read"):
        token_counts(tmp_path / "binary.csv")


def test_states_are_ordered_without_a_second_copy():
    _, model = wrapped(digit_level(), n_layer=12, n_embd=256, n_head=4)
    numbers = range(100)
    with pytest.warns(UserWarning, match="first position"):
        state_rows(model, range(12), digits="last")  # what is loaded once
    tracemalloc.start()
    with pytest.warns(UserWarning, match="first position"):
        rows = state_rows(model, numbers, digits="last")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows.nbytes == 13 * 100 * 256 * 4
    assert peak < 1.6 * rows.nbytes


@pytest.mark.slow
def test_the_states_of_gptj_fit_in_a_gigabyte():
    """28 layers × 361 numbers × 4096 dimensions, with all that a spectrum makes of them."""
    tracemalloc.start()
    states = np.random.default_rng(0).standard_normal((28, 361, 4096), dtype=np.float32)
    rows = xr.DataArray(
        states, dims=("layer", "number", "dimension"), coords={"number": np.arange(361)}
    )
    spectrum_test(rows, draws=100)
    amplitudes(rows, (2, 5, 10, 100), linear=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5e9

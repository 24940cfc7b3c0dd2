from __future__ import annotations

import json
from dataclasses import replace
from importlib.metadata import version

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from mechnum.errors import MechnumError
from mechnum.models.net_file import load_net
from mechnum.training.bundle import export, run_folder
from mechnum.training.card import Card
from mechnum.training.claim import claim
from mechnum.training.data import split
from mechnum.training.loop import train
from mechnum.training.nets import AdderNet, NativeNet
from tests.training import tiny


@pytest.fixture(
    scope="module",
    params=[tiny.ADDER, tiny.CLOCK, tiny.LLAMA, tiny.PIZZA],
    ids=lambda recipe: recipe.name,
)
def exported(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("exported") / request.param.name
    train(request.param, run_folder(out))
    return request.param, out, export(request.param, run_folder(out), out)


def logits(recipe, folder):
    """By whoever loads this kind of model: transformers, or the reader of `net.toml`."""
    tokens = recipe.data().tokens
    with torch.no_grad():
        if isinstance(recipe.net, NativeNet):
            return load_net(folder / "net.toml")[0](tokens)[:, -1]
        net = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True).eval()
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        texts = [f"{a}+{b}=" for a, b in tokens[:, [0, 2]].tolist()]
        assert tokenizer(texts, return_tensors="pt").input_ids.tolist() == tokens.tolist()
        return net(tokens).logits[:, -1]


def test_card_has_the_scores_of_the_stored_weights(exported):
    recipe, out, card = exported
    data = recipe.data()
    values = logits(recipe, out).double()
    right = (values.argmax(-1) == data.answers).double()
    losses = torch.nn.functional.cross_entropy(values, data.answers, reduction="none")
    parts = split(data, recipe.train_fraction, recipe.seed)
    for part, rows in parts._asdict().items():
        accuracy, loss = (getattr(card.score, f"{part}_{name}") for name in ("accuracy", "loss"))
        assert accuracy == pytest.approx(right[rows].mean().item(), abs=1e-12)
        assert loss == pytest.approx(losses[rows].mean().item(), rel=1e-6)
    assert (card.split.train, card.split.heldout) == (len(parts.train), len(parts.heldout))


def test_written_card_is_the_returned_one(exported):
    recipe, out, card = exported
    content = json.loads((out / "card.json").read_text())
    assert content == card.content()
    assert content["heldout_accuracy"] == card.score.heldout_accuracy
    assert card.command == f"mechnum train {recipe.name}"
    assert card.seed == recipe.seed
    assert {"torch", "transformers", "transformer-lens"} <= card.versions.keys()
    assert card.recipe == recipe.settings()


def test_readme_says_where_the_model_comes_from(exported):
    recipe, out, card = exported
    text = (out / "README.md").read_text()
    for said in (
        recipe.about,
        recipe.good_for,
        recipe.not_for,
        card.command,
        f"{card.score.heldout_accuracy:.2%}",
        f"{card.split.train} to train on, {card.split.heldout} held out",
        "default generator from SeedSequence(0)",
        f"torch {version('torch')}",
    ):
        assert " ".join(said.split()) in " ".join(text.split())


def test_folder_has_the_agreed_files_and_nothing_else(exported):
    recipe, out, _ = exported
    common = {"card.json", "README.md", "log.jsonl", "model.safetensors", "training"}
    own = {
        AdderNet: {"config.json", "tokenizer.json", "tokenizer_config.json"},
        NativeNet: {"net.toml"},
    }
    assert {file.name for file in out.iterdir()} == common | own[type(recipe.net)]


def test_exporting_again_gives_the_same_files(exported, tmp_path):
    recipe, out, _ = exported
    export(recipe, run_folder(out), tmp_path / "again")
    export(recipe, run_folder(out), tmp_path / "again")
    for file in (tmp_path / "again").iterdir():
        assert file.read_bytes() == (out / file.name).read_bytes(), file.name


def test_unfinished_run_is_refused(exported, tmp_path):
    recipe, _, _ = exported
    with pytest.raises(MechnumError, match="holds no run: start one with `mechnum train tiny"):
        export(recipe, tmp_path / "run", tmp_path / "out")
    claim(tmp_path / "run", recipe)
    with pytest.raises(MechnumError, match="has done 0 of 10 steps: finish it with"):
        export(recipe, tmp_path / "run", tmp_path / "out")

    class Stop(Exception):
        pass

    def stop(step, _score):
        if step == 7:
            raise Stop

    with pytest.raises(Stop):
        train(recipe, tmp_path / "run", stop)
    with pytest.raises(MechnumError, match="has done 6 of 10 steps: finish it with"):
        export(recipe, tmp_path / "run", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_run_without_its_log_is_refused(tmp_path):
    train(tiny.CLOCK, tmp_path / "run")
    (tmp_path / "run" / "log.jsonl").unlink()
    with pytest.raises(MechnumError, match="does not reach the last step: start again"):
        export(tiny.CLOCK, tmp_path / "run", tmp_path / "out")


def test_run_of_another_recipe_is_refused(exported, tmp_path):
    recipe, out, _ = exported
    with pytest.raises(MechnumError, match="a run of another recipe"):
        export(replace(recipe, seed=1), run_folder(out), tmp_path / "out")


def test_export_that_stops_half_way_leaves_no_weights(exported, tmp_path, monkeypatch):
    recipe, out, _ = exported

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Card, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        export(recipe, run_folder(out), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_export_left_is_cleared(exported, tmp_path):
    recipe, out, _ = exported
    (tmp_path / ".unfinished").mkdir()
    (tmp_path / ".unfinished" / "model.safetensors").write_text("half")
    export(recipe, run_folder(out), tmp_path)
    assert not (tmp_path / ".unfinished").exists()


def test_weights_beyond_half_precision_are_refused(tmp_path, monkeypatch):
    train(tiny.ADDER, tmp_path / "run")
    save = type(tiny.ADDER.net).save

    def blown_up(self, net, task, folder):
        with torch.no_grad():
            net.lm_head.weight *= 1e6
        save(self, net, task, folder)

    monkeypatch.setattr(type(tiny.ADDER.net), "save", blown_up)
    with pytest.raises(MechnumError, match="a loss that is not a number: train it with more"):
        export(tiny.ADDER, tmp_path / "run", tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(MechnumError, match="holds other files: choose a new or an empty folder"):
        run_folder(tmp_path)
    with pytest.raises(MechnumError, match="is a file: choose another folder"):
        run_folder(tmp_path / "thesis.tex")
    (tmp_path / "empty").mkdir()
    assert run_folder(tmp_path / "empty") == tmp_path / "empty" / "training"


def test_exported_folder_is_a_model_of_this_package(exported):
    from mechnum.models import load

    recipe, out, _ = exported
    model = load(str(out))
    assert (model.default_task, model.template) == (recipe.task, recipe.template)
    expected = logits(recipe, out)
    assert torch.allclose(model.logits(recipe.data().tokens), expected, atol=1e-4)

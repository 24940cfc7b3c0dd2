"""Nets that predict processes: the run is the plain loop, and the score is the exact loss."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.report import page_of
from mechnum.tasks.processes import mess3
from mechnum.training import ProcessScore, read_log, train, training_curves
from mechnum.training.bundle import export, run_folder
from mechnum.training.strings import ProcessStrings
from tests.training import tiny

RECIPE, N_CTX = tiny.PROCESS, 4
PROCESS = mess3(0.1, 0.8)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The net, the folder of its model, and the card."""
    out = tmp_path_factory.mktemp("process") / "out"
    return train(RECIPE, run_folder(out)), out, export(RECIPE, run_folder(out), out)


def exact_losses(net) -> tuple[float, float]:
    """Mean loss of the next token after 1 to 4 tokens, of the net and of Bayes' rule, over all
    strings, with matrix products written out."""
    strings = np.array(list(itertools.product(range(3), repeat=N_CTX + 1)))
    with torch.no_grad():
        logits = net(torch.from_numpy(strings[:, :-1])).double().log_softmax(-1).numpy()
    losses = np.zeros(2)
    for string, own in zip(strings, logits, strict=True):
        joint = [PROCESS.start]
        for token in string:
            joint.append(joint[-1] @ PROCESS.matrices[token])
        mass = np.array([vector.sum() for vector in joint])
        conditional = np.log(mass[2:] / mass[1:-1])
        losses -= mass[-1] * np.array([own[range(N_CTX), string[1:]].mean(), conditional.mean()])
    return losses[0], losses[1]


def test_run_is_the_plain_loop_with_new_strings_at_each_step(run):
    net = RECIPE.net.build(RECIPE.seed)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0, weight_decay=0, betas=(0.9, 0.98))
    for step in range(RECIPE.steps):
        optimizer.param_groups[0]["lr"] = 1e-2 * min(1, (step + 1) / 10)
        optimizer.zero_grad()
        seed = np.random.SeedSequence(0, spawn_key=(2, step))
        strings = torch.from_numpy(PROCESS.sample(16, N_CTX + 1, seed))
        logits = net(strings[:, :-1])
        each = [cross_entropy(logits[:, at], strings[:, at + 1]) for at in range(N_CTX)]
        (sum(each) / N_CTX).backward()
        optimizer.step()
    for name, tensor in net.state_dict().items():
        assert torch.allclose(run[0].state_dict()[name], tensor, atol=1e-5), name


def test_score_is_the_loss_over_all_strings_and_the_bound_that_of_bayes(run):
    net, out, card = run
    last = read_log(run_folder(out))[-1]
    assert isinstance(last, ProcessScore)
    loss, bound = exact_losses(net)
    assert last.bound == pytest.approx(bound, abs=1e-9)
    # A thousand strings stand for all of them.
    assert last.heldout_loss - bound == pytest.approx(loss - bound, rel=0.05)
    assert loss > bound
    assert card.score.heldout_loss == last.heldout_loss


def test_an_exact_predictor_has_the_bound_for_its_loss():
    """Logits from Bayes' rule in place of a net."""

    class Bayes(torch.nn.Module):
        def forward(self, tokens):
            beliefs = PROCESS.beliefs(tokens.numpy())[:, 1:]
            return torch.from_numpy(np.log(PROCESS.next_token(beliefs)))

    score = ProcessStrings(PROCESS, N_CTX).examples(RECIPE).score(Bayes(), 0, 0.0)
    assert score.heldout_loss == pytest.approx(score.bound, abs=1e-12)
    assert score.excess == pytest.approx(0, abs=1e-12)


def test_folder_is_a_model_that_names_its_process(run):
    net, out, card = run
    model = mn.load(str(out))
    assert model.default_task == "mess3:0.1,0.8"
    tokens = torch.from_numpy(PROCESS.sample(5, N_CTX, 1))
    assert torch.allclose(model.logits(tokens).float(), net(tokens)[:, -1], atol=1e-5)
    text = " ".join((out / "README.md").read_text().split())
    assert "| Strings | 160 to train on, 1,000 held out |" in text
    assert "above the least possible |" in text
    assert card.content()["bound"] == card.score.bound
    with pytest.raises(MechnumError, match=r"is a process, which asks no questions: use"):
        mn.tasks.parse(model.default_task)


def test_page_of_the_run_shows_the_loss_above_the_bound(run):
    results = training_curves(run_folder(run[1]))
    (figure,) = (
        block for section in page_of(results).sections for block in section.blocks
        if block.kind == "figure"
    )  # fmt: skip
    scores = read_log(run_folder(run[1]))
    excess = [score.heldout_loss - score.bound for score in scores]
    assert figure.views["curves"].data[0].y == pytest.approx(excess, rel=1e-5)
    assert "no net can predict" in figure.caption.text.lower()


def test_processes_have_no_share_to_train_on_and_prompts_have_one(tmp_path):
    for recipe in (replace(RECIPE, batch_size=None), replace(RECIPE, train_fraction=0.5)):
        with pytest.raises(MechnumError, match="has no end of strings"):
            train(recipe, tmp_path / "run")
    with pytest.raises(MechnumError, match="does not say how many prompts to train on: give"):
        train(replace(tiny.CLOCK, train_fraction=None), tmp_path / "run")
    assert not (tmp_path / "run").exists()

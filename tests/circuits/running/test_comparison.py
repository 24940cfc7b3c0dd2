"""Published beside measured: which model is which, and that nothing is called what it is not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.circuits.running.catalogue import CircuitFolder
from mechnum.circuits.running.comparison import published_figure
from mechnum.circuits.running.published import KINDS, PaperModel, Published, PublishedFigure
from mechnum.errors import MechnumError
from mechnum.models import TokenTable
from mechnum.report import page_of
from mechnum.toml_files import checked, read_toml

from . import planted

SHAPES = {"n_layers": 1, "d_model": 128, "d_vocab": 59}


def paper(**more):
    return PaperModel(name="theirs", family="native", **more)


def test_how_near_a_model_is(clock_59):
    ours = clock_59.fingerprint
    near = [
        paper(shapes=SHAPES, fingerprints=(ours,)),
        paper(shapes=SHAPES, hugging_face=("Clock-59",)),
        paper(shapes=SHAPES, fingerprints=("0" * 16,)),
        paper(shapes={**SHAPES, "d_model": 64}, fingerprints=(ours,)),
        paper(),
        PaperModel(name="theirs", family="gptj", shapes=SHAPES, fingerprints=(ours,)),
        PaperModel(name="theirs"),
    ]
    assert [KINDS.index(one.kinship(clock_59)) for one in near] == [0, 0, 1, 2, 2, 3, 3]


def test_a_table_of_tokens_is_near_no_model():
    table = TokenTable("minilm", "llama", torch.zeros(2, 2), None)
    assert PaperModel(name="theirs", family="llama").kinship(table) == KINDS[3]


FIGURES = """
source = "A paper"
[models.same]
name = "Same"
fingerprints = ["{fingerprint}"]
family = "native"
shapes = {{ n_layers = 1, d_model = 128 }}
[models.twin]
name = "Twin"
family = "native"
shapes = {{ n_layers = 1, d_model = 128 }}
[models.big]
name = "Big"
family = "gptj"
measured_on = "same family, other size"
[[figures]]
name = "two"
value = 2.2
model = "same"
place = "p"
tolerance = 0.25
steps = ["first"]
reading = "value"
[[figures]]
name = "twice two"
lower = 3
upper = 3.5
model = "same"
place = "p"
tolerance = 0.1
steps = ["first"]
reading = "value"
arguments = {{ times = 2 }}
[[figures]]
name = "two"
value = 2
model = "twin"
place = "p"
tolerance = 0.1
steps = ["absent", "first"]
reading = "value"
[[figures]]
name = "of a large model"
value = 2
model = "big"
place = "p"
tolerance = 1
steps = ["first"]
reading = "value"
[[figures]]
name = "of another metric"
value = 2
model = "twin"
place = "p"
steps = ["first"]
reading = "value"
requires = {{ metric = "logit" }}
[[figures]]
name = "not measured"
upper = 9
model = "same"
place = "p"
note = "Why."
"""


@pytest.fixture
def compared(site, clock_59):
    text = FIGURES.format(fingerprint=clock_59.fingerprint)
    recipe = planted.RECIPE + planted.STEPS + planted.step("absent", "refused")
    planted.package(site, "compared", recipe, published=text)
    planted.distribution(site, compared="compared")
    return mn.run_circuit("compared", clock_59)


def test_every_figure_is_a_row_and_only_the_very_model_meets_a_tolerance(compared):
    table = compared.results["published"].to_dataset()
    assert table["quantity"].values.tolist() == [
        "two", "twice two", "two", "of a large model", "of another metric", "not measured",
    ]  # fmt: skip
    np.testing.assert_equal(table["measured"].values, [2, 4, 2, np.nan, np.nan, np.nan])
    assert table["within"].values.tolist() == ["yes", "no", "", "", "", ""]
    assert table["needs"].values.tolist() == ["", "", "", "Big", "metric logit", "a step for it"]
    assert table["kind"].values.tolist() == [KINDS[i] for i in (0, 0, 1, 3, 1, 0)]
    np.testing.assert_equal(table["upper"].values[1::4], [3.5, 9])


def test_what_a_figure_needs_is_what_would_give_it(site, clock_59):
    text = FIGURES.format(fingerprint=clock_59.fingerprint).split("[[figures]]")[0]
    for number, (model, reading) in enumerate(
        [("big", ""), ("big", "value"), ("same", ""), ("same", "nothing")]
    ):
        text += f'[[figures]]\nname = "{number}"\nvalue = 1\nmodel = "{model}"\nplace = "p"\n'
        text += f'steps = ["first"]\nreading = "{reading}"\n' if reading else ""
    place = planted.package(site, "needing", published=text)
    with (place / "readings.py").open("a") as file:
        file.write("def nothing(results):\n    return float('nan')\n")
    planted.distribution(site, needing="needing")
    needs = mn.run_circuit("needing", clock_59).results["published"]["needs"].values.tolist()
    assert needs == ["Big and a step for it", "Big", "a step for it", "other settings"]


@pytest.mark.parametrize(
    ("attribute", "required", "lacks"),
    [
        ([2.0, 5.0], [2, 5], ""),
        ([2.0, 5.0], [2, 5, 10], "periods 2, 5, 10"),
        ([2.0, 5.0], [5, 2], "periods 5, 2"),
        (5.0, [5], ""),
        ("none", [5], "periods 5"),
        (None, [5], "periods 5"),
        ([2.0, 5.0], 2, "periods 2"),
    ],
)
def test_several_numbers_may_be_required(attribute, required, lacks):
    figure = PublishedFigure(
        name="x", value=1.0, model="m", place="p", requires={"periods": required}
    )
    attrs = {} if attribute is None else {"periods": np.asarray(attribute)}
    assert figure.lacks(attrs) == lacks


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        (
            'steps = ["frist"]\nreading = "value"',
            "two: there is no step 'frist': did you mean first",
        ),
        ('steps = ["first"]\nreading = "valeu"', "there is no reading 'valeu': did you mean value"),
        ("vlaue = 3", "there is no key 'vlaue': did you mean value"),
    ],
)
def test_wrong_figures_are_said_before_anything_is_measured(site, clock_59, figure, said):
    text = '[models.same]\nname = "Same"\n[[figures]]\nname = "two"\nvalue = 2\nmodel = "same"\n'
    planted.package(site, "wrong_figures", published=f'{text}place = "p"\n{figure}\n')
    planted.distribution(site, wrong_figures="wrong_figures")
    with pytest.raises(MechnumError, match=said):
        mn.run_circuit("wrong_figures", clock_59)
    assert planted.measured == []


def test_a_reading_that_fails_is_one_line(site, clock_59):
    text = FIGURES.format(fingerprint=clock_59.fingerprint)
    place = planted.package(site, "failing", published=text.replace('"absent", ', ""))
    (place / "readings.py").write_text("def value(results, times=1):\n    return {}['no']\n")
    planted.distribution(site, failing="failing")
    with pytest.raises(MechnumError, match="circuit failing: the reading value of 'two' fails"):
        mn.run_circuit("failing", clock_59)


def test_the_page_calls_nothing_a_reproduction(compared):
    html = page_of(compared.results).html()
    text = html[html.index("Published figures</h2>") :]
    assert "3 of the paper&#39;s 6 figures are measured here" in text
    assert "2 of them on the paper&#39;s own model: 1 of 2 with a tolerance are within it" in text
    assert "are no reproduction of the paper&#39;s" in text
    assert "needs metric logit" in text
    assert "3 to 3.50" in text
    # Contents of two levels, headings below each other, anchors that are there once.
    contents = html[html.index("<nav") : html.index("</nav>")]
    assert contents.count("<ol>") == 1 + 4
    for title, level in (("The first", 2), ("How it was run", 2), ("Settings", 3)):
        assert f">{title}</h{level}>" in html
    anchors = [part.split('"')[0] for part in contents.split('href="#')[1:]]
    assert len(set(anchors)) == len(anchors)
    assert all(
        html.count(f'<section id="{a}"') + html.count(f'part" id="{a}"') == 1 for a in anchors
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("value = 2.2", ""), "two: give either value, or lower and upper"),
        (('steps = ["first"]\nreading = "value"\narg', "arg"), "") ,
        (('reading = "value"\narguments', "arguments"), "give both steps and reading"),
        (('model = "big"', 'model = "bgi"'), "there is no model 'bgi': did you mean big"),
        (("n_layers", "n_layer"), "there is no shape 'n_layer': did you mean n_layers"),
        (('name = "twice two"', 'name = "two"'), "two is there twice for same: rename one"),
        (("place", "palce"), "there is no key 'palce': did you mean place"),
        (('"same family, other size"', '"cousins"'), "measured_on is 'cousins'"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_one_line(change, message, tmp_path):
    (tmp_path / "published.toml").write_text(
        FIGURES.format(fingerprint="0").replace(*change, 1), encoding="utf-8"
    )
    content = read_toml(tmp_path / "published.toml")
    if not message:
        assert checked(Published, content, "x", Published.keys()).figures[1].reading is None
        return
    with pytest.raises(MechnumError) as refused:
        checked(Published, content, "published.toml", Published.keys())
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_figure_by_name(compared):
    assert published_figure("compared", "twice two").upper == 3.5
    with pytest.raises(MechnumError, match="there is no figure 'twice': did you mean twice two"):
        published_figure("compared", "twice")


def test_numbers_that_are_not_there_meet_no_tolerance():
    (figure,) = Published.model_validate(
        {
            "models": {"m": {"name": "M"}},
            "figures": [
                {"name": "f", "upper": 1, "model": "m", "place": "p", "tolerance": 0.5}
            ],
        }
    ).figures  # fmt: skip
    assert [figure.within(x) for x in (-9.0, 1.5, 1.6, np.nan, np.inf)] == [
        "yes",
        "yes",
        "no",
        "",
        "",
    ]


def test_a_circuit_without_figures(circuit, clock_59):
    found = mn.run_circuit(circuit, clock_59)
    assert "published" not in found.results.children
    assert "Published figures" not in page_of(found.results).html()
    assert CircuitFolder("x", "planted_circuit").published == Published()

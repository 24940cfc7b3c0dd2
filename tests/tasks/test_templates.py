from __future__ import annotations

import pytest

from mechnum.errors import MechnumError
from mechnum.tasks.templates import FAMILY_TEMPLATES, Template, addition_template
from tests.tasks.stand_in import Spec, StandIn


@pytest.mark.parametrize("text", ["{a}+{b}=", "Add {a} and {b}: ", "{{x}} {a} - {b} is"])
def test_spans_point_at_the_operands_and_the_operator(text):
    filled = Template.parse(text).fill((12, -7), header="1+1=2\n")
    assert filled.text == "1+1=2\n" + text.format(a=12, b=-7)
    assert filled.text[slice(*filled.spans["a"])] == "12"
    assert filled.text[slice(*filled.spans["b"])] == "-7"
    assert filled.text[slice(*filled.spans["op"])] == text.split("{a}")[1].split("{b}")[0].strip()


@pytest.mark.parametrize(
    "text",
    ["", "{a}", "{b}+{a}=", "{a}+{a}=", "{a}+{b}={c}", "{}+{}=", "{a:3}+{b}=", "{a!r}+{b}=", "{a"],
)
def test_template_without_both_operands_is_refused(text):
    with pytest.raises(MechnumError, match=r"template .* write it like"):
        Template.parse(text)


@pytest.mark.parametrize(
    "text", ["{a}{b}=", "{a} {b}=", "{a}+{b}", "{a}+{b} ", "1{a}+{b}=", "{a}+{b}0="]
)
def test_template_in_which_numbers_run_together_is_refused(text):
    with pytest.raises(MechnumError, match="does not set the numbers apart"):
        Template.parse(text)


def test_template_of_the_family_unless_the_model_names_its_own():
    assert addition_template(StandIn(template="{a} {b} plus=")) == "{a} {b} plus="
    for family, template in FAMILY_TEMPLATES.items():
        assert addition_template(StandIn(template=None, spec=Spec(family))) == template
    assert addition_template(StandIn(template=None, spec=Spec("gpt2"))) == "{a}+{b}="


@pytest.mark.parametrize("template", FAMILY_TEMPLATES.values())
def test_templates_of_the_families_are_read(template):
    assert template.endswith("{a}+{b}=")
    Template.parse(template)

"""The page as text: what stands in it, and what cannot."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from handgrad import Conv2d, Flatten, Linear, MeanSquaredError, Network, ReLU, SoftmaxCrossEntropy, Tanh
from handgrad.explaining import Explanation, explain
from handgrad.explaining.page import FOLDER, MODULES, mathml, render_page
from handgrad.explaining.page.questions import questions
from handgrad.explaining.shape_ledger import sample

HOSTILE = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def record() -> Explanation:
    generator = np.random.default_rng(5)
    network = Network(Linear(4, 7), ReLU(), Linear(7, 3), loss=SoftmaxCrossEntropy(), seed=2)
    return explain(network, generator.normal(size=(5, 4)), generator.integers(0, 3, 5))


def test_every_line_stands_in_it_with_its_shape_and_reason(record: Explanation) -> None:
    page = render_page(record)
    lines = re.findall(r'<a class="line".*?</a>', page, re.DOTALL)
    assert len(lines) == len(record.lines)
    weight = next(line for line in lines if "dW1 = x.T @ dz1" in line)
    assert "(4, 7)" in weight
    assert "the same W1 serves every row: the rows add up" in weight


def test_a_gradient_says_whose_shape_it_has(record: Explanation) -> None:
    number = next(line.number for line in record.lines if line.target == "dW1")
    card = render_page(record).split(f'id="card-{number}"')[1].split("</article>")[0]
    letters = ", ".join(record.ledger["dW1"].axes)
    assert f"dW1 ({letters}) = (4, 7)" in card
    assert re.search(r"the shape of <code>W1</code>", card)
    assert 'href="#line-0"' in card  # undoes z1 = x @ W1 + b1


def test_a_card_derives_its_gradient_by_indices(record: Explanation) -> None:
    """From the forward line where there is one, and as its rule's docstring does, sentence by sentence."""
    page = render_page(record)
    cards = {
        line.target: page.split(f'id="card-{line.number}"')[1].split("</article>")[0] for line in record.lines
    }
    assert re.findall(r'<div class="step"><code>(.*?)</code>', cards["dW1"]) == [
        "z1[n, o1] = Σ_i x[n, i] · W1[i, o1] + b1[o1]",
        "∂z1[n, o1′]/∂W1[i, o1] = x[n, i] · δ[o1′, o1]",
        "dW1[i, o1] = Σ_{n, o1′} ∂z1[n, o1′]/∂W1[i, o1] · dz1[n, o1′]",
        "dW1[i, o1] = Σ_n x[n, i] · dz1[n, o1]",
    ]
    steps = re.findall(r"<li>(.*?)</li>", cards["dz2"])
    assert steps[-1] == "Together ∂l/∂z_c = p_c - q_c, and dz = (p - q) dl"
    assert len(steps) == 5


def test_questions_are_asked_where_a_network_answers_them(record: Explanation) -> None:
    """Of an activation, an error through weights and weights; a network of one layer has no activation to ask about."""
    asked = re.findall(r"<dt>(.*?)</dt><dd>", render_page(record).split('<dl class="questions">')[1])
    assert len(asked) >= 6
    assert asked[0] == "Which shape has dW1, and why is there a transpose?"
    assert "Is φ′ taken at z1 or at a1?" in asked
    generator = np.random.default_rng(5)
    single = Network(Linear(4, 3), loss=SoftmaxCrossEntropy(), seed=2)
    page = render_page(explain(single, generator.normal(size=(5, 4)), generator.integers(0, 3, 5)))
    assert "Which shape has dW1" in page
    assert "φ′ taken" not in page


def test_every_network_of_two_layers_answers_six_questions() -> None:
    """One input unit too; a recording has no switches, and ReLU's derivative is the same at z and at a."""
    generator = np.random.default_rng(5)
    one = Network(Linear(1, 6), Tanh(), Linear(6, 1), loss=MeanSquaredError())
    record = explain(one, generator.normal(size=(8, 1)), generator.normal(size=(8, 1)))
    assert len(questions(record)) == 6
    page = render_page(replace(record, live=None))
    assert "Switch on" not in page
    assert "Switch on" in render_page(record)
    relu = Network(Linear(4, 7), ReLU(), Linear(7, 3), loss=SoftmaxCrossEntropy(), seed=2)
    asked = questions(explain(relu, generator.normal(size=(5, 4)), generator.integers(0, 3, 5)))
    where = next(each for each in asked if each.question.startswith("Is φ′ taken"))
    assert "a1 is positive exactly where z1 is" in where.answer
    assert not where.switch
    assert "dW1[i, o1] = x[i] · dz1[o1]" in next(each for each in asked if "one row" in each.question).answer


def test_a_convolution_is_asked_nothing_about_transposes() -> None:
    network = Network(
        Conv2d(1, 2, 3), ReLU(), Flatten(), Linear(8, 3), loss=SoftmaxCrossEntropy(), inputs=(4, 4, 1), seed=1
    )
    generator = np.random.default_rng(5)
    asked = questions(explain(network, generator.normal(size=(6, 4, 4, 1)), generator.integers(0, 3, 6)))
    assert asked[0].question == "Which shape has dW2, and why is there a transpose?"
    assert not any("db1" in each.question or "dW1" in each.question for each in asked)


def test_what_makes_no_gradient_is_checked_through_what_reads_it(record: Explanation) -> None:
    line = next(line for line in record.lines if line.target == "p")
    assert record.check(line).startswith("checked through dz2, right: ")


def test_nothing_is_loaded_from_elsewhere(record: Explanation) -> None:
    page = render_page(record)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src &#39;none&#39;")
    assert "unsafe" not in policy[1]
    assert not re.search(r"""<[a-z]+[^>]* (src|href)=["']?(https?:)?//""", page)
    assert page.count("<script") == 2


def test_no_name_ends_the_script(record: Explanation) -> None:
    lines = tuple(
        replace(line, layer=HOSTILE, reason=HOSTILE, tex=rf"\text{{{HOSTILE}}}") for line in record.lines
    )
    drawing = tuple(replace(block, label=HOSTILE, layer=HOSTILE) for block in record.drawing)
    ledger = record.ledger | {HOSTILE: replace(record.ledger["x"], name=HOSTILE, axes=(HOSTILE, HOSTILE))}
    page = render_page(replace(record, title=HOSTILE, lines=lines, drawing=drawing, ledger=ledger))
    assert "<script>alert" not in page
    assert page.count("<script") == page.count("</script>") == 2


def test_a_rule_alone_has_a_page_too() -> None:
    from handgrad.rules import relu

    page = render_page(explain(relu, np.array([[1.0, -2.0, 3.0]])))
    assert "np.maximum" in page


def test_what_is_no_formula_is_shown_as_it_stands() -> None:
    assert mathml(r"\nothing{<i>") == r"<code>\nothing{&lt;i&gt;</code>"


def test_formulas_need_no_style_of_their_own() -> None:
    aligned = mathml(r"\begin{aligned} a &= b \\ c &= d \end{aligned}")
    assert "style" not in aligned.replace("displaystyle", "")
    assert 'class="right"' in aligned


def test_a_page_of_many_arrays_is_under_a_megabyte(record: Explanation) -> None:
    """Of each array it has fewer numbers; a diagonal stays square; what is written of it is of the whole array."""
    entry, jacobian = record.ledger["W1"], record.jacobians[0]
    large = sample(np.random.default_rng(0).normal(size=(64, 256)))
    many = {f"W{number}": replace(entry, sizes=(64, 256), sample=large) for number in range(9, 160)}
    square = replace(
        jacobian, output_sizes=(256,), input_sizes=(256,), sample=sample(np.eye(256), square=True)
    )
    page = render_page(replace(record, ledger=record.ledger | many, jacobians=(*record.jacobians, square)))
    assert len(page.encode()) < 1_000_000
    data = json.loads(page.split('id="record">')[1].split("</script>")[0])
    assert data["ledger"]["W9"]["sizes"] == [64, 256]
    down, across = data["jacobians"][-1]["sample"]["shape"]
    assert down == across


def test_every_module_is_in_the_page() -> None:
    assert {f"{name}.js" for name in MODULES} == {
        path.name for path in FOLDER.iterdir() if path.name.endswith(".js")
    }


def test_a_derivation_grows_with_the_lines_and_not_with_their_pairs() -> None:
    def size(depth: int) -> int:
        generator = np.random.default_rng(5)
        layers = [layer for _ in range(depth) for layer in (Linear(3, 3), ReLU())]
        network = Network(*layers, Linear(3, 2), loss=SoftmaxCrossEntropy())
        page = render_page(explain(network, generator.normal(size=(4, 3)), generator.integers(0, 2, 4)))
        return page.count("<template")

    assert size(8) - size(4) == size(12) - size(8)

"""The page's lines follow one another: Jacobians, mistakes and terms are those of the printed lines; a card states which."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import (
    BatchNorm,
    Explanation,
    LayerNorm,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    Residual,
    SoftmaxCrossEntropy,
    Tanh,
    explain,
)
from handgrad.cli.lab import small_network
from handgrad.explaining.execution import execute_network

from .test_live_page import EVERY, opened, shows

pytestmark = pytest.mark.browser

NORMED = Network(
    Linear(2, 6), BatchNorm(), ReLU(), Residual(Linear(6, 6), Tanh()), Linear(6, 3),
    loss=SoftmaxCrossEntropy(), dtype="float64", seed=2,
)  # fmt: skip
CONTINUOUS = Network(
    Linear(3, 5), LayerNorm(), Tanh(), Residual(Linear(5, 5), ReLU()), Linear(5, 2),
    loss=MeanSquaredError(), dtype="float64", seed=2,
)  # fmt: skip


@pytest.fixture(scope="module")
def lab(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Open the page of `handgrad lab`; each test leaves it as it was."""
    return opened(browser, tmp_path_factory.mktemp("lab"), small_network())


@pytest.fixture(scope="module")
def normed(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Open the page of a network with batch norm and a residual branch."""
    return opened(browser, tmp_path_factory.mktemp("normed"), record_of(NORMED))


def record_of(network: Network, rows: int = 16) -> Explanation:
    rng = np.random.default_rng(0)
    classes = isinstance(network.loss, SoftmaxCrossEntropy)
    x = rng.normal(size=(rows, 2 if classes else 3))
    return explain(network, x, rng.integers(0, 3, rows) if classes else rng.normal(size=(rows, 2)))


def card(page: Any) -> Any:
    return page.locator(".card:visible")


def panel(page: Any) -> Any:
    return card(page).locator("[data-mistakes]")


def makes(page: Any, target: str, mistake: str) -> None:
    """Switch a mistake on, or off again."""
    shows(page, target)
    panel(page).get_by_role("button", name=mistake, exact=True).click()


def values(page: Any) -> dict[str, Any]:
    return {name: np.array(numbers) for name, numbers in page.evaluate(EVERY).items()}


@pytest.mark.parametrize("network", [NORMED, CONTINUOUS], ids=["classes", "values"])
def test_every_jacobian_is_that_of_the_recorded_backward(
    browser: Any, tmp_path: Path, network: Network
) -> None:
    """Of the loss too: the lines follow the gradient of each row's loss, in a batch of many rows."""
    record = record_of(network)
    page = opened(browser, tmp_path, record)
    known = page.evaluate("Object.keys(handgrad.given.names)")
    compared = set()
    for each in record.jacobians:
        if each.gradient not in known:
            continue
        assert each.sample.shape == (*each.output_sizes, *each.input_sizes)
        found = page.evaluate(f"handgrad.jacobian('d{each.output}', '{each.gradient}', {each.example})")
        largest = max(map(abs, each.sample.numbers))
        np.testing.assert_allclose(
            found, each.sample.numbers, rtol=0, atol=5e-6 * largest, err_msg=each.input
        )
        compared.add((each.output, each.input))
    assert {("l", "z3"), ("loss", "l"), ("r2", "a1"), ("z1", "W1"), ("y1", "z1")} <= compared
    details = page.locator(".card details", has_text="Jacobian of l by z3").first
    shows(page, "dz3")
    details.locator("summary").click()
    assert details.locator("canvas").count() == 1
    assert page.said == []


def test_a_mistake_in_the_loss_s_gradient_reaches_every_line_after_it(lab: Any) -> None:
    right = values(lab)
    makes(lab, "dl", "the sign turned")
    wrong = values(lab)
    for name in ("dl", "dz3", "da2", "dW3", "dW1", "db1"):
        np.testing.assert_allclose(wrong[name], -right[name], rtol=1e-12, err_msg=name)
    np.testing.assert_array_equal(wrong["p"], right["p"])
    makes(lab, "dl", "/ count left out")
    np.testing.assert_allclose(values(lab)["dW1"], right["dW1"] * 64, rtol=1e-12)
    makes(lab, "dz3", "dl left out")
    np.testing.assert_allclose(values(lab)["dW1"], right["dW1"] * 64, rtol=1e-12)
    lab.click("#reset")
    np.testing.assert_array_equal(values(lab)["dW1"], right["dW1"])
    assert lab.said == []


def test_a_card_states_what_is_with_the_mistake_and_what_without(lab: Any) -> None:
    shows(lab, "dW1")
    before = card(lab).locator(".entry-title").inner_text().split(" = ")[1]
    makes(lab, "dW1", "the sign turned")
    title = card(lab).locator(".entry-title").inner_text()
    assert title.endswith(f"with the mistake in dW1; without it {before}")
    assert "The line as it is printed, without the mistake" in card(lab).locator(".entry").first.inner_text()
    assert float(card(lab).locator(".entry .right").last.inner_text()) == pytest.approx(
        float(before), rel=1e-3
    )
    assert (
        "of the line as it is printed, at the recorded numbers" in card(lab).locator(".witness").inner_text()
    )
    nudge = panel(lab).locator(".nudge dd").all_inner_texts()
    assert float(nudge[0].split(" = ")[1]) == pytest.approx(-float(nudge[1]), rel=1e-4)
    assert panel(lab).locator(".verdict").inner_text() == "✗ they disagree: a mistake is on in dW1"
    shows(lab, "z1")
    card(lab).locator("[data-value=W1] canvas").click(position={"x": 2, "y": 2})
    assert "✗ they disagree: a mistake is on in dW1" in card(lab).locator("[data-entry=W1]").inner_text()
    lab.click("#reset")
    assert "✓ they agree" in card(lab).locator("[data-entry=W1]").inner_text()
    assert lab.locator(".witness .recorded:visible").count() == 0
    assert lab.said == []


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1366, 768)])
def test_a_mistake_is_seen_at_every_line_until_it_is_off(lab: Any, width: int, height: int) -> None:
    lab.set_viewport_size({"width": width, "height": height})
    banner = lab.locator("#mistake")
    assert not banner.is_visible()
    makes(lab, "dz3", "the sign turned")
    for target in ("z1", "loss", "dz3", "db1"):
        shows(lab, target)
        assert banner.inner_text() == "A mistake is on in dz3: the sign turned switch off"
        assert lab.evaluate("document.documentElement.scrollWidth") <= width
    lab.click("#one-step")
    assert "with a mistake in dz3" in lab.locator("#live-loss").inner_text()
    banner.locator("a").click()
    assert lab.locator("[aria-current=step] code").inner_text().startswith("dz3 =")
    banner.locator("button").click()
    assert not banner.is_visible()
    assert panel(lab).locator("[aria-pressed=true]").count() == 0
    makes(lab, "dz3", "the sign turned")
    lab.click("#reset")
    assert not banner.is_visible()
    assert "mistake" not in lab.locator("#live-loss").inner_text()
    lab.set_viewport_size({"width": 1366, "height": 768})
    assert lab.said == []


def test_only_activations_are_asked_where_their_derivative_is_taken(normed: Any) -> None:
    asked = normed.locator(".questions dt").all_inner_texts()
    assert [each for each in asked if "φ′" in each and "taken" in each] == ["Is φ′ taken at z2 or at a2?"]
    normed.locator(".questions > div", has_text="elementwise product").locator("a.jump").click()
    assert normed.locator("[aria-current=step] code").inner_text() == "dz2 = da2 * 4 * e2 / (1 + e2) ** 2"
    shows(normed, "dz1")
    names = panel(normed).locator(".mistake-buttons button").all_inner_texts()
    assert {"rstd1 left out", "− through_mean1 left out", "− xhat1 · through_var1 left out"} <= {*names}
    assert not [name for name in names if "derivative" in name]
    shows(normed, "through_mean1")
    assert "/ n left out" in panel(normed).locator(".mistake-buttons button").all_inner_texts()
    for copied in ("p", "e2"):  # of forward's: no gradient comes through them
        shows(normed, copied)
        assert not panel(normed).is_visible()
    shows(normed, "dz1")
    right = values(normed)
    panel(normed).get_by_role("button", name="− through_mean1 left out", exact=True).click()
    rstd, dxhat, xhat, through = (
        right[name].reshape(-1, 6) for name in ("rstd1", "dxhat1", "xhat1", "through_var1")
    )
    np.testing.assert_allclose(
        values(normed)["dz1"], (rstd * (dxhat - xhat * through)).ravel(), rtol=1e-9, atol=1e-15
    )
    normed.click("#reset")
    assert normed.said == []


def test_a_line_that_passes_a_gradient_on_is_no_product(normed: Any) -> None:
    for target, upstream in (("da1_r2", "dr2"), ("da2", "dr2")):
        shows(normed, target)
        text = card(normed).locator(".entry").first.inner_text()
        assert re.match(rf"{target}\[\d+, \d+\] = \S+\s+= {upstream}\[\d+, \d+\]", text)
        assert panel(normed).locator(".mistake-buttons button").all_inner_texts() == ["the sign turned"]
    shows(normed, "da1")
    text = card(normed).inner_text()
    assert "Sums the ways from a1 to the loss: da1_r2 through r2, da1_z2 through z2" in text
    assert "Differentiates" not in text
    shows(normed, "da1_r2")
    assert (
        "By the line of r2 alone, not through z2 and a2" in card(normed).locator(".jacobian").text_content()
    )
    assert normed.said == []


def test_a_gradient_that_is_rounding_is_not_compared_with_itself(normed: Any) -> None:
    makes(normed, "db1", "the mean in place of the sum")
    text = panel(normed).inner_text()
    assert "db1 is 0 but for rounding, with the mistake too: b1 does not change the loss here" in text
    normed.click("#reset")
    assert "no effect" in normed.locator("#health").inner_text().lower()
    assert normed.said == []


def test_lines_are_written_with_their_numbers(lab: Any) -> None:
    """A forward product with its sum and its bias, a loss, an elementwise line; every term of a long sum; an update."""
    now = values(lab)
    shows(lab, "z1")
    card(lab).locator("[data-value=z1] canvas").click(position={"x": 2, "y": 2})
    text = card(lab).locator(".entry").first.inner_text()
    assert "= Σ + b1[0]" in text
    assert "2 products, added up" in text
    assert "x[0, 0] · W1[0, 0]" in text
    shows(lab, "l")
    text = card(lab).locator(".entry").first.inner_text()
    row = int(re.match(r"l\[(\d+)\]", text)[1])
    assert f"q[{row}, 0] · (log(whole[{row}, 0]) - s[{row}, 0])" in text
    for target, begins in (
        ("dl", "= dloss / count"),
        ("dz3", "= (p["),
        ("dz1", "= da1["),
        ("loss", "= total / count"),
    ):
        shows(lab, target)
        lines = card(lab).locator(".entry .trace p").all_inner_texts()
        assert lines[0].startswith(begins)
        assert not re.search(r"[=(+/] ·|· [)+/]|·$", lines[0])  # no part without a name
        assert re.fullmatch(r"= [-\d.e+() ·/*]+", lines[1])
        scope = {"__builtins__": {}}
        computed = eval(lines[1][2:].replace("·", "*"), scope)
        assert computed == pytest.approx(float(lines[2][2:]), rel=5e-3)
    shows(lab, "db1")
    rows = card(lab).locator(".entry tbody tr")
    few = rows.count()
    card(lab).get_by_role("button", name="51 more").click()
    assert (few, rows.count()) == (15, 65)
    lab.evaluate(
        "[...document.querySelectorAll('.line')].find((l) => l.textContent.includes('W1 -=')).click()"
    )
    text = card(lab).locator(".entry").first.inner_text()
    at = re.match(r"W1\[(\d), (\d)\]", text)
    place = 8 * int(at[1]) + int(at[2])
    before, after = map(float, re.search(r"before the step (\S+), after it (\S+):", text).groups())
    assert before == pytest.approx(now["W1"][place], rel=1e-3)
    assert after == pytest.approx(now["W1"][place] - now["learning_rate"][0] * now["dW1"][place], rel=1e-3)
    assert lab.said == []


def test_what_is_no_number_of_an_input_is_not_used(lab: Any) -> None:
    shows(lab, "q")
    card(lab).locator("[data-value=t] canvas").click(position={"x": 2, "y": 2})
    entry = card(lab).locator("[data-entry=t]")
    number, own = entry.locator("input[type=number]"), int(values(lab)["t"][0])
    for text in ("5", "0.5", "-1", ""):
        number.fill(text)
        assert entry.locator(".error").inner_text() == f"Give a whole number from 0 to 1: {own} is used."
        assert values(lab)["t"][0] == own
    number.fill(str(1 - own))
    assert not entry.locator(".error").is_visible()
    assert values(lab)["t"][0] == 1 - own
    shows(lab, "z1")
    card(lab).locator("[data-value=W1] canvas").click(position={"x": 2, "y": 2})
    entry = card(lab).locator("[data-entry=W1]")
    entry.locator("input[type=number]").fill("7.5")
    assert entry.locator(".entry-title").inner_text() == "W1[0, 0] = 7.5"
    assert float(entry.locator("input[type=range]").get_attribute("max")) > 7.5
    entry.locator("input[type=number]").fill("")
    assert "7.5 is used" in entry.locator(".error").inner_text()
    assert values(lab)["W1"][0] == 7.5
    header = float(lab.locator("#loss").inner_text())
    assert header == pytest.approx(values(lab)["loss"][0], rel=1e-3)
    assert lab.locator(".witness .recorded").count() > 5
    assert lab.locator("#health .recorded").is_visible()
    for text in ("0", "-1", ""):
        lab.fill("#rate", text)
        assert lab.locator("#rate-note").inner_text() == "Give a number above 0: 0.5 is used."
    lab.fill("#rate", "0.5")
    assert not lab.locator("#rate-note").is_visible()
    lab.click("#reset")
    assert not lab.locator("#health .recorded").is_visible()
    assert lab.locator("#loss").inner_text() == lab.locator("#loss").get_attribute("data-recorded")
    assert lab.said == []


def test_pictures_are_repainted_in_place_while_it_trains(lab: Any) -> None:
    """No figure is made anew, and what they show at the end is the program's."""
    shows(lab, "dW1")
    lab.evaluate(
        "() => { window.made = 0; new MutationObserver((all) => { made += all.flatMap((each) => [...each.addedNodes])"
        ".filter((node) => node.tagName === 'FIGURE' || node.tagName === 'CANVAS').length; })"
        ".observe(document.querySelector('.card:not([hidden])'), { childList: true, subtree: true }); }"
    )
    lab.locator("[data-play]").click()
    while lab.evaluate("handgrad.scalars.step") <= 12:
        lab.wait_for_timeout(50)
    lab.locator("[data-play]").click()
    assert lab.evaluate("made") == 0
    shown = float(card(lab).locator(".numbers tbody td").first.inner_text())
    assert shown == pytest.approx(values(lab)["dW1"][0], rel=1e-3)
    lab.click("#reset")
    assert lab.said == []


def test_with_other_numbers_every_card_is_theirs(normed: Any) -> None:
    """A card that was seen before is drawn again, and so are the trace and the drawing."""
    shows(normed, "dW1")
    shows(normed, "z1")
    card(normed).locator("[data-value=W1] canvas").click(position={"x": 2, "y": 2})
    card(normed).locator("[data-entry=W1] input[type=number]").fill("2.5")
    shows(normed, "dW1")
    found = float(card(normed).locator(".numbers tbody td").first.inner_text())
    network = NORMED
    before = network.parameters["W1"][0, 0]
    network.parameters["W1"][0, 0] = 2.5
    rng = np.random.default_rng(0)
    expected = execute_network(network, rng.normal(size=(16, 2)), rng.integers(0, 3, 16)).values["dW1"]
    network.parameters["W1"][0, 0] = before
    assert found == pytest.approx(expected[0, 0], rel=1e-3)
    normed.click("#reset")
    assert normed.said == []

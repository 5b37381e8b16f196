"""The lab's setup, in Chromium: a network chosen in the page is the one that Python explains, in every number and word."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import SGD, HalfSquaredError, Linear, Network, SoftmaxCrossEntropy, explain
from handgrad.cli.lab import lab_page
from handgrad.explaining.execution import execute_network
from handgrad.explaining.page import render_page
from handgrad.explaining.structures import ACTIVATIONS

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page of `handgrad lab`."""
    found = tmp_path_factory.mktemp("setup") / "lab.html"
    found.write_text(lab_page(), encoding="utf-8")
    return found


def opened(browser: Any, file: Path, width: int = 1366, height: int = 768, **options: Any) -> Any:
    page = browser.new_context(viewport={"width": width, "height": height}, **options).new_page()
    page.set_default_timeout(60_000)
    page.said = []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    return page


def chosen(page: Any, **controls: Any) -> None:
    """Set controls by their ids, one after the other, and wait for the page of each choice."""
    for name, value in controls.items():
        before = page.evaluate("document.getElementById('setup').dataset.chosen")
        control = page.locator(f"#{name.replace('_', '-')}")
        if isinstance(value, bool):
            control.evaluate("node => node.click()")
        else:
            control.evaluate(
                "(node, text) => { node.value = text; node.dispatchEvent(new Event('change')); }", str(value)
            )
        page.wait_for_selector(f"#setup:not([data-chosen='{before}'])", state="attached")
        page.wait_for_selector("html[data-ready]", state="attached")


ARRAYS = "Object.fromEntries(Object.entries(handgrad.arrays).map(([k, v]) => [k, Array.from(v)]))"
VALUES = "Object.fromEntries(Object.keys(handgrad.given.names).map((k) => [k, Array.from(handgrad.value(k).data)]))"


def in_python(
    page: Any, activation: str, widths: list[int], task: str, decay: float = 0
) -> tuple[Network, Any, Any]:
    """Make the network that the page has, with the page's weights, and the page's rows."""
    arrays = {name: np.array(numbers) for name, numbers in page.evaluate(ARRAYS).items()}
    rows = page.evaluate("handgrad.n")
    x = arrays["x"].reshape(rows, -1)
    layers: list[Any] = []
    sizes = [x.shape[1], *widths]
    for k, (inputs, units) in enumerate(zip(sizes, widths, strict=False)):
        kinds = ACTIVATIONS[activation]
        kind = kinds[k % len(kinds)]
        layers += [Linear(inputs, units), *([kind()] if kind else [])]
    if task == "classification":
        layers.append(Linear(sizes[-1], 2))
        loss, t = SoftmaxCrossEntropy(), arrays["t"].astype(int)
    else:
        layers.append(Linear(sizes[-1], 1))
        loss, t = HalfSquaredError(reduction="mean"), arrays["t"].reshape(-1, 1)
    network = Network(*layers, loss=loss, dtype="float64")
    for name, array in network.parameters.items():
        array[...] = arrays[name].reshape(array.shape)
    return network, x, t


def agree(found: dict[str, Any], values: dict[str, Any]) -> None:
    largest = max(float(np.abs(value).max()) for name, value in values.items() if name.startswith("d"))
    compared = 0
    for name, expected in values.items():
        if name not in found:
            continue
        compared += 1
        scale = max(float(np.abs(expected).max(initial=0)), largest if name.startswith("d") else 1.0)
        np.testing.assert_allclose(
            found[name], np.asarray(expected, float).ravel(), rtol=0, atol=1e-12 * scale, err_msg=name
        )
    assert compared > 10


CHOICES: list[tuple[dict[str, Any], str, list[int], str, float]] = [
    ({"rows": 40, "units_1": 5, "units_2": 3}, "tanh-relu", [5, 3], "classification", 0),
    ({"data_set": "circles", "feature_xx": True, "feature_yy": True, "units_1": 4}, "tanh-relu", [4, 8], "classification", 0),
    ({"activation": "sigmoid", "layers": 3, "units_2": 4, "decay": 0.003}, "sigmoid", [8, 4, 8], "classification", 0.003),
    ({"data_set": "sine", "layers": 1, "feature_sinx": True, "test_share": 25}, "tanh", [8], "regression", 0),
    ({"data_set": "hills", "layers": 1, "batch": 8}, "tanh", [8], "regression", 0),
    ({"data_set": "line", "layers": 0, "batch": 1, "decay": 0.1}, "linear", [], "regression", 0.1),
]  # fmt: skip


@pytest.mark.parametrize(("controls", "activation", "widths", "task", "decay"), CHOICES)
def test_each_choice_is_the_network_that_python_explains(
    browser: Any,
    file: Path,
    controls: dict[str, Any],
    activation: str,
    widths: list[int],
    task: str,
    decay: float,
) -> None:
    """Every value to 1e-12; the weights after a step; and the words about shapes, Jacobians and saved bytes."""
    page = opened(browser, file)
    chosen(page, **controls)
    network, x, t = in_python(page, activation, widths, task)
    values = execute_network(network, x, t).values
    agree(page.evaluate(VALUES), values)
    optimiser = SGD(0.5, weight_decay=decay)
    record = explain(network, x, t, optimiser=optimiser)
    if task == "classification":  # with one output a Jacobian is one number, which is of every structure
        assert words_of(page) == words_of_rendered(browser, file.parent, record)
    before = {name: array.copy() for name, array in network.parameters.items()}
    page.click("#one-step")
    after = page.evaluate(ARRAYS)
    for name, array in before.items():
        moved = array - 0.5 * (values[f"d{name}"] + decay * array)
        np.testing.assert_allclose(after[name], moved.ravel(), rtol=1e-12, atol=1e-13)
    assert page.said == []
    page.context.close()


WORDS = """() => {
  const texts = (root, query) =>
    [...root.querySelectorAll(query)].map((node) => node.textContent.replace(/\\s+/g, " ").trim());
  const cards = [...document.querySelectorAll(".card")].map((card) => [
    ...texts(card, ".place, .claim, .because, :not(.factors *).formula, .indices, .step, [data-bytes]"),
    // what a ReLU's Jacobian stores depends on which units of the row are active
    ...texts(card, ".jacobian dd").filter((text) => !text.includes("random upstream") && !card.innerHTML.includes("&gt; 0)")),
  ]);
  const factors = [...document.querySelectorAll("template")].map((each) => texts(each.content, "li"));
  const [title, program, shapes, questions] = ["h1", ".line", "#shapes td", ".questions dd"].map((q) => texts(document, q));
  return { title, cards, factors, program, shapes, questions };
}"""


def words_of(page: Any) -> Any:
    return page.evaluate(WORDS)


def words_of_rendered(browser: Any, folder: Path, record: Any) -> Any:
    other = folder / "other.html"
    other.write_text(render_page(record), encoding="utf-8")
    page = opened(browser, other)
    found = page.evaluate(WORDS)
    page.context.close()
    return found


def test_data_batches_and_seeds(browser: Any, file: Path) -> None:
    """Test rows are no training rows, an epoch has each row once, and a seed draws the same again."""
    page = opened(browser, file)
    chosen(page, rows=32, test_share=25, batch=8, layers=1, activation="relu")
    rows = "(part) => Array.from(handgradRows()[part].points)"
    page.evaluate(
        "window.handgradRows = () => ({ training: handgrad.space.rows(handgrad), test: handgrad.space.test })"
    )
    training, test = (np.array(page.evaluate(rows, part)).reshape(-1, 2) for part in ("training", "test"))
    assert (len(training), len(test)) == (24, 8)
    every = {tuple(row) for row in (*training, *test)}
    assert len(every) == 32
    seen = []
    for _ in range(3):
        seen += [tuple(row) for row in np.array(page.evaluate(ARRAYS)["x"]).reshape(-1, 2)]
        page.click("#one-step")
    assert set(seen) == {tuple(row) for row in training}
    assert len(seen) == 24
    network, _, _ = in_python(page, "relu", [8], "classification")
    losses = re.fullmatch(r"step 3, loss (\S+), batch (\S+), test (\S+)", page.inner_text("#live-loss"))
    assert losses
    t = np.array(page.evaluate("Array.from(handgrad.space.test.t)")).astype(int)
    assert float(losses[3]) == pytest.approx(execute_network(network, test, t).values["loss"], rel=1e-3)
    weights = page.evaluate(ARRAYS)["W1"]
    chosen(page, batch=0)  # another batch leaves the weights as they are
    assert page.evaluate(ARRAYS)["W1"] == weights
    first = page.evaluate(ARRAYS)["x"]
    for number, other in (("0.3", True), ("0.1", False)):
        chosen(page, noise=number)
        assert (page.evaluate(ARRAYS)["x"] != first) == other
    page.locator("#new-data").evaluate("node => node.click()")
    assert page.evaluate(ARRAYS)["x"] != first
    drawn = page.evaluate(ARRAYS)["W1"]
    page.locator("#new-weights").evaluate("node => node.click()")
    assert page.evaluate(ARRAYS)["W1"] != drawn
    assert page.said == []
    page.context.close()


@pytest.mark.parametrize(("width", "height", "scheme"), [(390, 844, "dark"), (1366, 768, "light")])
def test_the_controls_have_names_and_leave_the_program_in_view(
    browser: Any, file: Path, width: int, height: int, scheme: str
) -> None:
    page = opened(browser, file, width, height, color_scheme=scheme)
    page.evaluate("document.getElementById('open-setup').click()")
    assert page.evaluate("document.activeElement.id") == "data-set"
    unnamed = page.evaluate(
        "[...document.querySelectorAll('#setup :is(input, select, button)')]"
        ".filter((node) => !(node.labels?.length || node.textContent || node.ariaLabel)).map((node) => node.outerHTML)"
    )
    assert unnamed == []
    chosen(page, data_set="spirals")
    assert page.evaluate("document.activeElement.id") == "data-set"
    chosen(page, layers=3, decay=0.01)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert "0.01 * W1" in page.locator(".line", has_text="dW1_decayed =").inner_text()
    chosen(page, decay=0.3)
    assert "0.3 * W1" in page.locator(".line", has_text="dW1_decayed =").inner_text()
    page.evaluate("scrollTo(0, 0)")
    for part in ("[aria-current=step]", *([".card:not([hidden]) .claim", "#live"] if width > 760 else [])):
        assert (
            0
            <= page.evaluate("s => document.querySelector(s).getBoundingClientRect().top", part)
            < height - 20
        )
    picture = "document.getElementById('live-predictions').toDataURL()"
    shaded = page.evaluate(picture)
    page.locator("#sharp").evaluate("node => node.click()")
    assert page.evaluate(picture) != shaded
    assert page.said == []
    page.context.close()


def test_every_unit_is_drawn_and_leads_to_its_line(browser: Any, file: Path) -> None:
    page = opened(browser, file)
    page.get_by_role("button", name="Units", exact=True).click()
    assert page.locator(".units canvas").count() == 2 + 8 + 8 + 2
    edges = "[...document.querySelectorAll('.units path')].map((path) => [path.textContent, Number(path.style.strokeWidth)])"
    found = page.evaluate(edges)
    weights = page.evaluate(ARRAYS)
    expected = [weight for name in ("W1", "W2", "W3") for weight in weights[name]]
    assert [float(text.split()[1]) for text, _ in found] == pytest.approx(expected, rel=1e-3)
    for name, start in (("W1", 0), ("W2", 16), ("W3", 80)):
        sizes = np.abs(weights[name])
        widths = [width for _, width in found[start : start + len(sizes)]]
        assert widths == pytest.approx(0.4 + 4.6 * sizes / sizes.max(), rel=1e-3)
    page.get_by_role("button", name="a2[:, 3]", exact=True).click()
    assert page.locator("[aria-current=step] code").inner_text().startswith("a2 =")
    assert page.locator(".card:visible .entry-title").inner_text().startswith("a2[0, 3] =")
    page.click("#one-step")
    assert page.evaluate(edges) != found
    assert page.said == []
    page.context.close()

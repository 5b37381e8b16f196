"""The lab's setup, in Chromium: a network chosen in the page is the one that Python explains, in every number and word."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
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
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    assert chromium, "install chromium: these tests drive it"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-background-networking"]
        )
        yield started
        started.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page of `handgrad lab`."""
    found = tmp_path_factory.mktemp("setup") / "lab.html"
    found.write_text(lab_page(), encoding="utf-8")
    return found


def opened(browser: Any, file: Path, width: int = 1366, height: int = 768, **options: Any) -> Any:
    page = browser.new_context(viewport={"width": width, "height": height}, **options).new_page()
    page.set_default_timeout(30_000)
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
    ({"data_set": "circles", "feature_xx": True, "feature_yy": True, "units_1": 1}, "tanh-relu", [1, 8], "classification", 0),
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
    """Every value to 1e-12; the weights after a step; and every word about shapes, Jacobians and saved bytes."""
    page = opened(browser, file)
    chosen(page, **controls)
    network, x, t = in_python(page, activation, widths, task)
    values = execute_network(network, x, t).values
    agree(page.evaluate(VALUES), values)
    optimiser = SGD(0.5, weight_decay=decay)
    record = explain(network, x, t, optimiser=optimiser)
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
    ...texts(card, ".place, .claim, .because, .formula, .indices, .step, [data-bytes]"),
    ...texts(card, ".jacobian dd").filter((text) => !text.includes("random upstream")),
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

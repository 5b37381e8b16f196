"""The page runs the program's own lines: in Chromium, its numbers are the reference engine's, and what is changed follows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import (
    GELU,
    SGD,
    Adam,
    BatchNorm,
    BinaryCrossEntropy,
    Embedding,
    Explanation,
    LayerNorm,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    Residual,
    Sigmoid,
    SoftmaxCrossEntropy,
    Standardise,
    Tanh,
    explain,
)
from handgrad.checking.mistakes import MISTAKES
from handgrad.cli.lab import small_network
from handgrad.explaining.execution import execute_network
from handgrad.explaining.page import FOLDER, render_page
from handgrad.explaining.snapshots import take_snapshot

pytestmark = pytest.mark.browser


def opened(browser: Any, folder: Path, record: Explanation, **options: Any) -> Any:
    (folder / "page.html").write_text(render_page(record), encoding="utf-8")
    page = browser.new_context(viewport={"width": 1366, "height": 768}, **options).new_page()
    page.set_default_timeout(60_000)
    page.said = []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.goto((folder / "page.html").as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    return page


def random_network(seed: int) -> tuple[Network, Any, Any]:
    """Draw layers, sizes, rows and a loss."""
    rng = np.random.default_rng(seed)
    inputs, classes, rows = (int(rng.integers(low, high)) for low, high in ((2, 6), (2, 5), (3, 20)))
    layers: list[Any] = [Standardise()] if rng.random() < 0.5 else []
    width = inputs
    for _ in range(int(rng.integers(1, 4))):
        new = int(rng.integers(2, 9))
        layers.append(Linear(width, new))
        layers += rng.choice(np.array([BatchNorm(), LayerNorm(), None], object), 1).tolist()
        layers.append(rng.choice(np.array([ReLU(), Tanh(), Sigmoid()], object)))
        if rng.random() < 0.4:
            layers.append(Residual(Linear(new, new), Tanh()))
        width = new
    layers = [layer for layer in layers if layer is not None]
    x = rng.normal(size=(rows, inputs))
    kind = seed % 3
    if kind == 0:
        loss, outputs, t = SoftmaxCrossEntropy(), classes, rng.integers(0, classes, rows)
    elif kind == 1:
        loss, outputs, t = MeanSquaredError(), classes, rng.normal(size=(rows, classes))
    else:
        loss, outputs, t = BinaryCrossEntropy(), 1, rng.integers(0, 2, (rows, 1)).astype(float)
    network = Network(*layers, Linear(width, outputs), loss=loss, dtype="float64", seed=seed)
    network.standardise(x, t)
    return network, x, t


def agree(found: dict[str, Any], values: dict[str, Any]) -> None:
    """Compare each value relative to its largest entry, or to what it comes from: gradients to the largest, others to 1."""
    largest = max(float(np.abs(value).max()) for name, value in values.items() if name.startswith("d"))
    for name, numbers in found.items():
        expected = np.asarray(values[name], float).ravel()
        scale = max(float(np.abs(expected).max(initial=0)), largest if name.startswith("d") else 1.0)
        np.testing.assert_allclose(
            np.asarray(numbers, float), expected, rtol=0, atol=1e-12 * scale, err_msg=name
        )


EVERY = "() => Object.fromEntries(Object.keys(handgrad.given.names).map((k) => [k, Array.from(handgrad.value(k).data)]))"


@pytest.mark.parametrize("seed", range(9))
def test_every_value_is_the_reference_engine_s(browser: Any, tmp_path: Path, seed: int) -> None:
    """Before training and after five steps of it in the page, with other inputs, weights and batch."""
    network, x, t = random_network(seed)
    normed = any(node.rule.name.startswith("batch_norm") for node in network.nodes(weighted=False))
    # Adam divides the rounding of a bias before batch norm, whose gradient is 0, by itself
    optimiser = SGD(0.1) if normed or seed % 2 else Adam(0.01)
    page = opened(browser, tmp_path, explain(network, x, t, optimiser=optimiser))
    found = page.evaluate(EVERY)
    found.pop("learning_rate", None)
    execution = execute_network(network, x, t)
    assert {f"d{name}" for name in network.parameters} | {"loss"} <= found.keys()
    agree({name: each for name, each in found.items() if name in execution.values}, execution.values)
    arrays = {name: array.copy() for name, array in network.arrays.items()}
    program = network.program(optimiser)
    arrays |= {name: np.zeros(shape) for name, shape in program.slots.items()}
    from handgrad.engines import ReferenceEngine

    bound = ReferenceEngine().bind(program, arrays)
    batch = network.check_batch(x, t, None)
    for step in range(1, 6):
        bound.run(**batch, learning_rate=optimiser.learning_rate, step=step, seed=0)
        page.click("#one-step")
    after = page.evaluate(
        "() => Object.fromEntries(Object.entries(handgrad.arrays).map(([k, v]) => [k, Array.from(v)]))"
    )
    for name in network.parameters:
        np.testing.assert_allclose(after[name], arrays[name].ravel(), rtol=1e-9, atol=1e-12)
    page.click("#reset")
    agree({"loss": page.evaluate(EVERY)["loss"]}, {"loss": found["loss"], "d": 1.0})
    assert page.said == []


@pytest.fixture(scope="module")
def small() -> tuple[Network, Any, Any]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(24, 2))
    network = Network(Linear(2, 6), Tanh(), Linear(6, 2), loss=SoftmaxCrossEntropy(), dtype="float64", seed=4)
    return network, x, (x[:, 0] * x[:, 1] > 0).astype(int)


def line_of(record: Explanation, target: str) -> int:
    return next(line.number for line in record.lines if line.target == target)


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1024, 640), (1366, 768), (1920, 1080)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_number_is_changed_and_every_gradient_follows(
    browser: Any, tmp_path: Path, small: tuple[Network, Any, Any], width: int, height: int, scheme: str
) -> None:
    network, x, t = small
    record = explain(network, x, t)
    page = opened(browser, tmp_path, record, color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": height})
    canvas = page.locator(".card:visible [data-value=W1] canvas")
    canvas.click(position={"x": 2, "y": 2})
    panel = page.locator(".card:visible [data-entry=W1]")
    panel.locator("input[type=number]").fill("1.25")
    moved = {**{name: each.copy() for name, each in network.parameters.items()}}
    before = network.parameters["W1"][0, 0]
    network.parameters["W1"][0, 0] = 1.25
    values = execute_network(network, x, t).values
    network.parameters["W1"][0, 0] = before
    assert moved["W1"][0, 0] == before
    found = page.evaluate(EVERY)
    agree({name: found[name] for name in ("dW1", "dz1", "loss", "p")}, values)
    page.evaluate(f"document.getElementById('line-{line_of(record, 'dW1')}').click()")
    shown = page.locator(".card:visible .numbers tbody td").first.inner_text()
    assert float(shown) == pytest.approx(values["dW1"][0, 0], rel=1e-3)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.said == []


TOGETHER = """() => {
  const box = (s) => document.querySelector(`.card:not([hidden]) ${s}`).getBoundingClientRect();
  const panel = box(".entry-slot"), stepper = document.querySelector(".stepper").getBoundingClientRect();
  const name = document.querySelector(".card:not([hidden]) .entry-slot").dataset.entry;
  const picture = box(`.slot[data-value=${name}] canvas`);
  const covered = panel.left < picture.right && panel.top < picture.bottom;
  return { name, covered, picture: [picture.top - stepper.bottom, innerHeight - picture.bottom],
           panel: [panel.top - stepper.bottom, innerHeight - panel.bottom] };
}"""


@pytest.mark.parametrize(
    ("width", "height"), [(390, 844), (1024, 640), (1280, 720), (1366, 768), (1920, 1080)]
)
def test_the_panel_of_an_entry_is_in_view_with_its_picture(lab: Any, width: int, height: int) -> None:
    lab.set_viewport_size({"width": width, "height": height})
    for target in ("z1", "dz3", "dz1", "dW1"):
        shows(lab, target)
        names = lab.locator(".card:visible .figures .slot").evaluate_all(
            "all => all.map((s) => s.dataset.value)"
        )
        for name in dict.fromkeys(names):
            lab.evaluate("scrollTo(0, 0)")
            lab.locator(f".card:visible .slot[data-value={name}] canvas").click(position={"x": 1, "y": 1})
            lab.wait_for_timeout(60)
            found = lab.evaluate(TOGETHER)
            assert found["name"] == name
            assert not found["covered"], (target, name)
            assert min(*found["picture"], *found["panel"]) >= -2, (target, found)
            if (target, name) == ("dW1", "dW1") and width > 1000:  # with the columns that it is computed from
                factors = lab.evaluate(
                    """() => ["x", "dz1"].map((name) => {
                      const card = document.querySelector(".card:not([hidden])");
                      const box = (s) => card.querySelector(s).getBoundingClientRect();
                      const [picture, panel] = [box(`.slot[data-value=${name}] canvas`), box(".entry-slot")];
                      return panel.left >= picture.right || panel.top >= picture.bottom;
                    })"""
                )
                assert factors == [True, True]
    lab.set_viewport_size({"width": 1366, "height": 768})
    assert lab.said == []


def test_a_cell_of_a_table_is_changed_too_and_focus_stays_in_the_picture(lab: Any) -> None:
    shows(lab, "z1")
    lab.locator(".card:visible .numbers", has_text="W1").locator("tbody tr").nth(1).locator("td").nth(
        2
    ).click()
    panel = lab.locator(".card:visible .entry-slot")
    assert panel.inner_text().splitlines()[-1] != ""
    assert panel.locator(".entry-title").inner_text().startswith("W1[1, 2] = ")
    assert panel.locator("input[type=number]").count() == 1
    lab.locator(".card:visible [data-value=W1] canvas").focus()
    for key in ("ArrowRight", "Enter"):
        lab.keyboard.press(key)
    assert panel.locator(".entry-title").inner_text().startswith("W1[0, 1] = ")
    assert lab.evaluate("document.activeElement.tagName") == "CANVAS"
    lab.keyboard.press("End")
    assert lab.locator(".card:visible [data-value=W1] .readout").inner_text().startswith("W1[0, 7] = ")
    assert lab.locator("[aria-current=step] code").inner_text().startswith("z1 =")
    shows(lab, "dW1")
    lab.locator(".card:visible summary").first.focus()
    lab.keyboard.press("ArrowRight")
    assert lab.locator("[aria-current=step] code").inner_text().startswith("db1 =")
    assert lab.said == []


def test_arrays_of_a_line_have_one_scale(lab: Any) -> None:
    """(64, 2), (64, 8) and (2, 8): a size that two share has one length, and the products' outlines have it too."""
    shows(lab, "dW1")
    sizes = {
        name: lab.locator(f".card:visible .slot[data-value={name}] canvas").evaluate(
            "e => [parseFloat(e.style.height), parseFloat(e.style.width)]"
        )
        for name in ("x", "dz1", "dW1")
    }
    assert sizes["x"][0] == sizes["dz1"][0]
    assert sizes["dz1"][1] == sizes["dW1"][1]
    assert sizes["x"][0] / sizes["x"][1] == pytest.approx(32, rel=0.02)
    picture = lab.locator(".card:visible .product-picture")
    assert "64 columns of x.T meet the 64 rows of dz1" in picture.inner_text()
    assert (
        "dz1.T @ x sums over the same 64, and is dW1 transposed: not the shape of W1." in picture.inner_text()
    )
    assert picture.locator("svg").nth(1).get_attribute("aria-label") == "dz1.T @ x = dW1.T"
    assert lab.said == []


@pytest.mark.parametrize("width", [390, 1366])
def test_no_formula_and_no_table_is_cropped(browser: Any, tmp_path: Path, width: int) -> None:
    rng = np.random.default_rng(0)
    network = Network(
        Linear(2, 6),
        BatchNorm(),
        ReLU(),
        Residual(Linear(6, 6), Tanh()),
        Linear(6, 3),
        loss=SoftmaxCrossEntropy(),
    )
    page = opened(browser, tmp_path, explain(network, rng.normal(size=(24, 2)), rng.integers(0, 3, 24)))
    page.set_viewport_size({"width": width, "height": 800})
    wide = page.evaluate("""() => {
      const found = [];
      for (const line of document.querySelectorAll(".line")) {
        line.click();
        const card = document.querySelector(".card:not([hidden])");
        for (const part of card.querySelectorAll(".formula, .corner, .trace table, .product-picture svg")) {
          const inside = part.getBoundingClientRect().right <= card.getBoundingClientRect().right + 2;
          const cropped = part.clientWidth && part.scrollWidth > part.clientWidth + 1;
          if (!inside || cropped) found.push(`${line.id} ${part.className}`);
        }
      }
      return found;
    }""")
    assert wide == []
    assert page.said == []


def test_a_nudge_stands_beside_the_gradient(
    browser: Any, tmp_path: Path, small: tuple[Network, Any, Any]
) -> None:
    network, x, t = small
    page = opened(browser, tmp_path, explain(network, x, t))
    page.locator(".card:visible [data-value=W1] canvas").click(position={"x": 2, "y": 2})
    facts = page.locator(".card:visible .nudge dd").all_inner_texts()
    quotient, gradient = float(facts[0].split(" = ")[1]), float(facts[1])
    assert gradient == pytest.approx(network.gradients(x, t)["W1"][0, 0], rel=1e-5)
    assert quotient == pytest.approx(gradient, rel=1e-4)
    page.locator(".card:visible .entry select").select_option("1")
    wide = float(page.locator(".card:visible .nudge dd").first.inner_text().split(" = ")[1])
    assert wide != pytest.approx(gradient, rel=1e-4)
    assert page.said == []


def test_a_number_is_traced_to_its_terms(
    browser: Any, tmp_path: Path, small: tuple[Network, Any, Any]
) -> None:
    """dW1[i, j] = Σ x[n, i] dz1[n, j]: the terms, their sum, and the two columns that are lit."""
    network, x, t = small
    record = explain(network, x, t)
    page = opened(browser, tmp_path, record)
    page.click(f"#line-{line_of(record, 'dW1')}")
    gradient = network.gradients(x, t)["W1"]
    row, column = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
    text = page.locator(".card:visible .entry").inner_text()
    assert text.startswith(f"dW1[{row}, {column}] = ")
    assert f"x[0, {row}] · dz1[0, {column}]" in text
    assert "24 products, added up" in text
    assert float(text.split("Σ")[-1]) == pytest.approx(gradient[row, column], rel=1e-3)
    lit = {
        name: page.locator(f".card:visible .slot[data-value={name}] .lit").count()
        for name in ("x", "dz1", "dW1")
    }
    assert lit == {"x": 1, "dz1": 1, "dW1": 1}  # one outline around each column
    size = "e => [e.offsetWidth, e.offsetHeight].join()"
    outline = page.locator(".card:visible .slot[data-value=x] .lit")
    column = page.locator(".card:visible .slot[data-value=x] canvas").evaluate(
        "e => [e.offsetWidth / 2, e.offsetHeight].map(Math.round).join()"
    )
    assert outline.evaluate(size) == column
    assert (
        outline.evaluate("e => getComputedStyle(e).outlineOffset") == "0px"
    )  # around the cells, not on them
    page.click(f"#line-{line_of(record, 'da1')}")
    assert "· W2[" in page.locator(".card:visible .entry").inner_text()
    page.click(f"#line-{line_of(record, 'dz1')}")
    assert "da1[" in page.locator(".card:visible .entry").inner_text()
    assert page.said == []


def test_training_plays_pauses_and_is_reset(
    browser: Any, tmp_path: Path, small: tuple[Network, Any, Any]
) -> None:
    network, x, t = small
    page = opened(browser, tmp_path, explain(network, x, t))
    start = page.evaluate("handgrad.loss")
    picture = "document.getElementById('live-predictions').toDataURL()"
    first = page.evaluate(picture)
    page.fill("#rate", "0.5")
    page.locator("[data-play]").click()
    page.wait_for_timeout(1500)
    page.locator("[data-play]").click()
    steps = page.evaluate("handgrad.scalars.step")
    assert steps > 3
    assert page.evaluate("handgrad.loss") < start
    assert page.evaluate(picture) != first
    page.wait_for_timeout(200)
    assert page.evaluate("handgrad.scalars.step") == steps
    page.click("#reset")
    assert page.evaluate("handgrad.loss") == start
    assert page.evaluate(picture) == first
    assert page.said == []


LAB_VIEWS = [(390, 844), (1024, 640), (1366, 768), (1920, 1080)]


@pytest.fixture(scope="module")
def lab(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Open the page of `handgrad lab`; each test leaves it as it was."""
    return opened(browser, tmp_path_factory.mktemp("lab"), small_network())


def shows(page: Any, target: str) -> None:
    """Click a line in the program."""
    page.evaluate(
        "t => [...document.querySelectorAll('.line')].find((l) => l.textContent.trim().startsWith(`${t} =`)).click()",
        target,
    )


def test_the_lab_opens_at_the_first_gradient_with_all_in_view(lab: Any) -> None:
    lab.evaluate("history.replaceState(null, '', location.pathname)")
    lab.reload()
    lab.wait_for_selector("html[data-ready]", state="attached")
    assert lab.locator("[aria-current=step] code").inner_text() == "dz3 = (p - q) * dl[..., None]"
    for width, height in LAB_VIEWS:
        lab.set_viewport_size({"width": width, "height": height})
        shows(lab, "dz3")
        bottoms = {
            part: lab.evaluate("s => document.querySelector(s).getBoundingClientRect().top", part)
            for part in ("[aria-current=step]", ".card:not([hidden]) .claim", "#live", "#live-predictions")
        }
        beside = width > 760  # on a phone what is trained comes below the card
        assert all(0 <= top < height - 20 for name, top in bottoms.items() if beside or "live" not in name)
        assert lab.evaluate("document.documentElement.scrollWidth") <= width
    lab.set_viewport_size({"width": 1366, "height": 768})
    assert lab.said == []


def test_the_picture_moves_with_a_weight_an_input_a_step_and_a_reset(lab: Any) -> None:
    picture = "document.getElementById('live-predictions').toDataURL()"
    seen = [lab.evaluate(picture)]
    shows(lab, "z1")
    for name in ("W1", "x"):
        lab.locator(f".card:visible [data-value={name}] canvas").click(position={"x": 2, "y": 2})
        lab.locator(f".card:visible [data-entry={name}] input[type=number]").fill("0.75")
        seen.append(lab.evaluate(picture))
    lab.click("#one-step")
    seen.append(lab.evaluate(picture))
    assert len(set(seen)) == len(seen)
    lab.click("#reset")
    assert lab.evaluate(picture) == seen[0]
    assert "class 0 blue, circles" in lab.locator("#live-key").inner_text()
    assert lab.said == []


def test_a_unit_is_drawn_over_the_two_inputs(lab: Any) -> None:
    """The chosen unit's own picture, whose largest number is that of the forward on a grid."""
    shows(lab, "a1")
    card = lab.locator(".card:visible")
    card.locator("[data-value=a1] canvas").click(position={"x": 2, "y": 2})
    text = card.locator(".unit figcaption").inner_text()
    assert text.startswith("a1[:, 0] over the two inputs")
    first = lab.evaluate("document.querySelector('.card:not([hidden]) .unit canvas').toDataURL()")
    x, w, b = (np.array(lab.evaluate(f"Array.from(handgrad.arrays.{name})")) for name in ("x", "W1", "b1"))
    x, w = x.reshape(-1, 2), w.reshape(2, 8)
    low, high = x.min(axis=0), x.max(axis=0)
    low, high = low - 0.15 * (high - low), high + 0.15 * (high - low)
    cells = (np.arange(40) + 0.5) / 40
    grid = np.stack(np.meshgrid(*(low + cells[:, None] * (high - low)).T), axis=-1)
    values = np.tanh(grid @ w[:, 0] + b[0])
    said = [float(each) for each in re.findall(r"from (\S+) to (\S+)", text)[0]]
    assert said == pytest.approx([values.min(), values.max()], rel=1e-3)
    shows(lab, "z1")
    shows(lab, "a1")
    card.locator("[data-value=a1] canvas").click(position={"x": 22, "y": 2})
    assert lab.evaluate("document.querySelector('.card:not([hidden]) .unit canvas').toDataURL()") != first
    assert lab.said == []


def test_a_jacobian_is_of_any_row(lab: Any) -> None:
    """∂z1/∂W1 of row 5 is x[5] ⊗ I, and ∂a1/∂z1 its own diagonal."""
    shows(lab, "dW1")
    details = lab.locator(".card:visible details", has_text="Jacobian of z1 by W1")
    details.locator("summary").click()
    picture = "document.querySelector('.card:not([hidden]) [data-jacobian] canvas').toDataURL()"
    before = lab.evaluate(picture)
    details.locator("input[type=number]").fill("5")
    assert lab.evaluate(picture) != before
    x, z1 = (np.array(lab.evaluate(f"Array.from(handgrad.value('{name}').data)")) for name in ("x", "z1"))
    found = np.array(lab.evaluate("handgrad.jacobian('dz1', 'dW1', 5)")).reshape(8, 2, 8)
    np.testing.assert_allclose(found, np.einsum("i,pq->piq", x.reshape(-1, 2)[5], np.eye(8)), atol=1e-15)
    found = np.array(lab.evaluate("handgrad.jacobian('da1', 'dz1', 5)")).reshape(8, 8)
    np.testing.assert_allclose(found, np.diag(1 - np.tanh(z1.reshape(-1, 8)[5]) ** 2), atol=1e-15)
    assert lab.said == []


def test_each_layer_s_gradient_is_drawn_along_the_network(lab: Any) -> None:
    """One bar for each layer with weights: its number is the norm of all its gradients, the longest the largest."""
    shows(lab, "db1")
    values = lab.evaluate(EVERY)
    norms = [np.linalg.norm([*values[f"dW{k}"], *values[f"db{k}"]]) for k in (1, 2, 3)]
    texts = lab.locator(".network .norm text").all_text_contents()
    assert [float(text.split()[1]) for text in texts] == pytest.approx(norms, rel=1e-3)
    widths = [float(bar.get_attribute("width")) for bar in lab.locator(".network .norm rect").all()]
    assert np.array(widths) / max(widths) == pytest.approx(np.array(norms) / max(norms), rel=1e-6)
    shows(lab, "dW2")
    assert lab.locator(".network .norm.ready").count() == 1  # db2 comes later, and dW1


def test_the_page_runs_in_a_notebook_s_frame(
    browser: Any, tmp_path: Path, small: tuple[Network, Any, Any]
) -> None:
    """In its own frame within another page, offline: it steps, trains, and its links stay in the frame."""
    network, x, t = small
    shown = explain(network, x, t).page()._repr_mimebundle_()["text/html"]
    (tmp_path / "notebook.html").write_text(
        f"<!doctype html><title>notebook</title><h1 id=health>no</h1>{shown}"
    )
    page = browser.new_context(viewport={"width": 1100, "height": 900}, offline=True).new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((tmp_path / "notebook.html").as_uri())
    frame = page.frames[1]
    frame.wait_for_selector("html[data-ready]", state="attached")
    start = frame.evaluate("handgrad.loss")
    frame.click("#one-step")
    assert frame.evaluate("handgrad.loss") < start
    frame.click("[data-step=on]")
    assert frame.locator("[aria-current=step] code").inner_text().startswith("a1 =")
    page.wait_for_timeout(350)
    frame.click("nav a[href='#health']")
    assert frame.evaluate("document.getElementById('health').getBoundingClientRect().top") < 720
    assert len(page.frames) == 2
    assert frame.evaluate("handgrad.scalars.step") == 2
    assert said == []


CURVES = [
    (MeanSquaredError, 1, "the prediction, from"),
    (SoftmaxCrossEntropy, 3, "the probability, from"),
    (BinaryCrossEntropy, 1, "the probability, from"),
]


@pytest.mark.parametrize(("loss", "outputs", "said"), CURVES)
def test_one_input_has_a_curve_that_moves(
    browser: Any, tmp_path: Path, loss: Any, outputs: int, said: str
) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(13, 1))
    t = {
        MeanSquaredError: np.sin(x),
        SoftmaxCrossEntropy: rng.integers(0, 3, 13),
        BinaryCrossEntropy: (x > 0) * 1.0,
    }[loss]
    network = Network(Linear(1, 5), Tanh(), Linear(5, outputs), loss=loss(), dtype="float64")
    page = opened(browser, tmp_path, explain(network, x, t))
    picture = "document.getElementById('live-predictions').toDataURL()"
    before = page.evaluate(picture)
    page.click("#one-step")
    assert page.evaluate(picture) != before
    assert page.locator("#live-key").inner_text().startswith(said)
    assert page.said == []


def test_mistakes_are_switched_on(browser: Any, tmp_path: Path, small: tuple[Network, Any, Any]) -> None:
    """The wrong numbers are those that NumPy gives for the wrong line; a shape that does not fit is an error."""
    network, x, t = small
    record = explain(network, x, t)
    page = opened(browser, tmp_path, record)
    values = execute_network(network, x, t).values
    dz1, dz2, dW1, da1 = (values[name] for name in ("dz1", "dz2", "dW1", "da1"))
    wrong = {
        "dW1": {
            "the mean over the rows in place of the sum": dW1 / 24,
            "the rows averaged before the product": np.outer(x.sum(0), dz1.sum(0)) / 24,
            "the sign turned": -dW1,
        },
        "db1": {"the mean in place of the sum": dz1.mean(0)},
        "dz1": {
            "the local derivative left out: da1 unchanged": da1,
            "the derivative taken at a1, not at z1": da1 * (1 - np.tanh(values["a1"]) ** 2),
        },
        "da1": {"W2 updated before this line": dz2 @ (network.parameters["W2"] - 0.1 * values["dW2"]).T},
    }
    for target, mistakes in wrong.items():
        page.click(f"#line-{line_of(record, target)}")
        panel = page.locator(".card:visible [data-mistakes]")
        for name, expected in mistakes.items():
            panel.get_by_role("button", name=name, exact=True).click()
            found = page.evaluate(f"Array.from(handgrad.value('{target}').data)")
            np.testing.assert_allclose(found, expected.ravel(), rtol=1e-9)
            assert "with the mistake (dashed)" in panel.inner_text()
            assert panel.locator(".wrong").count() == 1
            panel.get_by_role("button", name=name, exact=True).click()
            found = page.evaluate(f"Array.from(handgrad.value('{target}').data)")
            np.testing.assert_allclose(found, values[target].ravel(), rtol=1e-9)
    page.click(f"#line-{line_of(record, 'dW1')}")
    panel = page.locator(".card:visible [data-mistakes]")
    panel.get_by_role("button", name="the transpose left out").click()
    assert "(24, 2) @ (24, 6): 2 columns do not meet 24 rows" in panel.inner_text()
    panel.get_by_role("button", name="* in place of @").click()
    assert "(2, 24) * (24, 6)" in panel.inner_text()
    panel.get_by_role("button", name="the sign turned").click()
    page.click("#line-0")
    page.locator(".card:visible [data-value=W1] canvas").click(position={"x": 2, "y": 2})
    facts = page.locator(".card:visible .nudge dd").all_inner_texts()
    assert float(facts[0].split(" = ")[1]) == pytest.approx(-float(facts[1]), rel=1e-4)
    assert page.said == []


def test_a_term_is_left_out_and_square_matrices_are_multiplied_entry_by_entry(
    browser: Any, tmp_path: Path
) -> None:
    """A value that is used twice, and an error of as many rows as it has columns, where * raises nothing."""
    rng = np.random.default_rng(5)
    x, t = rng.normal(size=(4, 4)), rng.normal(size=(4, 4))
    network = Network(Linear(4, 4), Residual(Tanh()), Linear(4, 4), loss=MeanSquaredError(), dtype="float64")
    record = explain(network, x, t)
    page = opened(browser, tmp_path, record)
    values = execute_network(network, x, t).values
    error = next(line.target for line in record.lines if line.expression.count("W2.T"))
    upstream = values["dz2"]
    sums = next(
        line for line in record.lines if line.phase == "backward" and line.expression.count(" + d") == 1
    )
    first, second = sums.expression.split(" + ")
    wrong = {
        error: {"* in place of @": upstream * network.parameters["W2"].T},
        sums.target: {f"{first} left out": values[second], f"{second} left out": values[first]},
    }
    for target, mistakes in wrong.items():
        page.evaluate(f"document.getElementById('line-{line_of(record, target)}').click()")
        panel = page.locator(".card:visible [data-mistakes]")
        for name, expected in mistakes.items():
            panel.get_by_role("button", name=name, exact=True).click()
            found = page.evaluate(f"Array.from(handgrad.value('{target}').data)")
            np.testing.assert_allclose(found, expected.ravel(), rtol=1e-9)
            panel.get_by_role("button", name=name, exact=True).click()
    assert page.said == []


def test_six_questions_are_answered_two_clicks_away(lab: Any) -> None:
    """Each leads to a card that shows what it speaks of; a mistake that it names can be switched on there."""
    lab.click("nav a[href='#questions']")
    asked = lab.locator(".questions > div")
    expected = ["dW1 =", "dW1 =", "dW1 =", "dz1 =", "dz1 =", "da2 ="]
    assert asked.count() == len(expected)
    for number, line in enumerate(expected):
        each = asked.nth(number)
        answer = each.locator("dd").inner_text()
        each.locator("a.jump").click()
        assert lab.locator("[aria-current=step] code").inner_text().startswith(line)
        card = lab.locator(".card:visible")
        for mistake in re.findall("“(.*?)”", answer):
            assert card.get_by_role("button", name=mistake, exact=True).count() == 1
        formulas = card.locator(".step code").all_inner_texts()
        for formula in re.findall(r"∂z1\[.*?\] · δ\[[^\]]*\]|dW1\[[^\]]*\] = Σ_n x.*?dz1\[[^\]]*\]", answer):
            assert formula in formulas
    assert lab.said == []


def test_each_mistake_has_a_name_of_the_catalogue() -> None:
    codes = set(re.findall('"([a-z]+(?:-[a-z]+)+|transposed)"', (FOLDER / "mistakes.js").read_text("utf-8")))
    assert codes <= MISTAKES.keys()
    assert len(codes) == 11


def test_a_snapshot_s_weights_are_taken(
    browser: Any, tmp_path: Path, small: tuple[Network, Any, Any]
) -> None:
    network, x, t = small
    start = {name: array.copy() for name, array in network.parameters.items()}
    snapshots = [replace(take_snapshot(network, x, t), step=0)]
    for name, gradient in network.gradients(x, t).items():
        network.parameters[name] -= gradient
    snapshots.append(replace(take_snapshot(network, x, t), step=1, epoch=1))
    page = opened(browser, tmp_path, replace(explain(network, x, t), snapshots=tuple(snapshots)))
    page.locator("#moment").focus()
    page.keyboard.press("Home")
    found = page.evaluate("Array.from(handgrad.arrays.W1)")
    for name, array in start.items():
        network.parameters[name][...] = array
    np.testing.assert_allclose(found, start["W1"].ravel(), rtol=1e-5)
    assert page.evaluate("handgrad.loss") == pytest.approx(snapshots[0].loss, rel=1e-4)
    assert page.said == []


def test_what_the_page_cannot_run_is_recorded() -> None:
    """GELU needs the normal distribution, and ten thousand weights are too many."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(5, 3)), rng.integers(0, 2, 5)
    for layers in ([Linear(3, 4), GELU(), Linear(4, 2)], [Linear(3, 2000), ReLU(), Linear(2000, 2)]):
        record = explain(Network(*layers, loss=SoftmaxCrossEntropy()), x, t)
        assert record.live is None
        assert 'id="live"' not in render_page(record)


def test_texts_are_run_too(browser: Any, tmp_path: Path) -> None:
    network = Network(Embedding(11, 4), Linear(4, 3), inputs=6, loss=SoftmaxCrossEntropy(), dtype="float64")
    rng = np.random.default_rng(3)
    x, t = rng.integers(0, 11, (7, 6)), rng.integers(0, 3, (7, 6))
    page = opened(browser, tmp_path, explain(network, x, t))
    values = execute_network(network, x, t).values
    found = page.evaluate(EVERY)
    agree({name: each for name, each in found.items() if name in values}, values)
    assert page.said == []

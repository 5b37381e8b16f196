"""The page in Chromium: every interaction is driven, with no error on the console and no request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import Linear, Network, ReLU, SoftmaxCrossEntropy, Standardise
from handgrad.data import digits
from handgrad.explaining import Explanation, explain
from handgrad.explaining.page import render_page
from handgrad.rules import softmax

from .page_records import CONTRAST, HOSTILE, made_hostile, record_of_moons

pytestmark = pytest.mark.browser
DESK, PHONE = {"width": 1440, "height": 900}, {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def moons() -> Explanation:
    return record_of_moons()


Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Open a record's page from the disk; at the end there was no error and no request but for the file."""
    said: list[str] = []
    asked: list[str] = []
    contexts = []

    def start(record: Explanation, size: dict[str, int] = DESK, scheme: str = "light") -> Any:
        path = tmp_path / "page.html"
        path.write_text(render_page(record), encoding="utf-8")
        context = browser.new_context(viewport=size, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        return page

    yield start
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:image/png"))] == []


def _number(record: Explanation, target: str) -> int:
    return next(line.number for line in record.lines if line.target == target)


def _shown(page: Any) -> str:
    """Return the text of the one card that is seen."""
    cards = page.locator(".card:visible")
    assert cards.count() == 1
    return str(cards.inner_text())


def test_a_gradient_is_two_clicks_away(open_page: Open, moons: Explanation) -> None:
    page = open_page(moons)
    page.click("nav a[href='#shapes']")
    page.locator("#shapes a", has_text=re.compile("^dW1$")).click()
    letters = ", ".join(moons.ledger["W1"].axes)
    assert f"dW1 ({letters}) = (2, 6), the shape of W1" in _shown(page)
    assert "the same W1 serves every row: the rows add up" in _shown(page)


def test_stepping_with_buttons_runs_forward_then_backward(open_page: Open, moons: Explanation) -> None:
    page = open_page(moons)
    for line in moons.lines:
        where = f"Line {line.number + 1} of {len(moons.lines)}, {line.phase}"
        assert page.locator("#where").inner_text() == where
        assert page.locator("[aria-current=step] code").inner_text().startswith(line.target)
        assert page.locator(".card:visible").get_attribute("id") == f"card-{line.number}"
        assert page.locator(".line[data-done]").count() == line.number + 1
        page.click("[data-step=on]")
    page.click("[data-step=first]")
    assert page.locator("#where").inner_text().startswith("Line 1 ")
    page.click("[data-step=last]")
    page.click("[data-step=back]")
    assert page.locator("#where").inner_text().startswith(f"Line {len(moons.lines) - 1} ")


def test_stepping_with_the_keyboard_alone(open_page: Open, moons: Explanation) -> None:
    page = open_page(moons)
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "line":
            break
    assert page.evaluate("document.activeElement.id") == "line-0"
    for key, number in [("ArrowDown", 1), ("ArrowRight", 2), ("ArrowUp", 1), ("End", len(moons.lines) - 1)]:
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.id") == f"line-{number}"
        assert page.locator(".card:visible").get_attribute("id") == f"card-{number}"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    assert page.locator(".line[tabindex='0']").count() == 1


def test_the_drawing_is_reached_and_moved_through_with_keys(open_page: Open, moons: Explanation) -> None:
    page = open_page(moons)
    page.locator(".network .hit[tabindex='0']").focus()
    first = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") != first
    page.get_by_role("button", name="dW1 (2, 6)", exact=True).focus()
    page.keyboard.press("Enter")
    assert "the shape of W1" in _shown(page)


def test_the_slider_of_the_program(open_page: Open, moons: Explanation) -> None:
    page = open_page(moons)
    page.locator("#position").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator("#where").inner_text().startswith("Line 3 ")
    assert moons.lines[2].target in page.locator("#position").get_attribute("aria-valuetext")


def test_pairs_are_marked_and_followed(open_page: Open, moons: Explanation) -> None:
    page = open_page(moons)
    forward, backward = _number(moons, "z1"), _number(moons, "dW1")
    item = page.locator(f"li[data-number='{forward}']")
    page.hover(f"#line-{backward}")
    assert "hinted" in item.get_attribute("class")
    page.mouse.move(2, 2)
    assert "hinted" not in item.get_attribute("class")
    page.focus(f"#line-{backward}")
    assert "hinted" in item.get_attribute("class")
    page.click(f"li[data-number='{backward}'] a.undoes")
    assert page.locator(".card:visible").get_attribute("id") == f"card-{forward}"
    page.locator(".card:visible a.jump", has_text="dW1").click()
    assert page.locator(".card:visible").get_attribute("id") == f"card-{backward}"


def test_the_drawing_follows_the_program(open_page: Open, moons: Explanation) -> None:
    page = open_page(moons)
    blocks = page.locator(".network .block")
    assert blocks.count() == len(moons.drawing) - 1  # the target and what is made of it are one
    assert page.locator(".network .edge.backward.ready").count() == 0
    # targets enter at the loss, by an arrow from the side: they are no blocks between the layers and it
    labels = page.locator(".network .block .label").all_text_contents()
    assert labels.index("mean") == len(blocks_in_column := [each for each in labels if each != "q"]) - 1
    assert "one_hot_targets" not in blocks_in_column
    page.click("[data-step=last]")
    every = page.locator(".network .edge").count()
    assert page.locator(".network .edge.ready").count() == every
    assert page.locator(".network .edge.backward").count() >= 6  # the branch's two ways back included
    page.get_by_role("button", name=re.compile("^da1 ")).click()
    assert "da1" in page.locator("[aria-current=step]").inner_text()
    assert page.locator(".network .current").count() == 1


def test_a_gradient_shows_values_derivation_jacobian_and_witness(open_page: Open, moons: Explanation) -> None:
    page = open_page(moons)
    number = _number(moons, "dW1")
    page.click(f"#line-{number}")
    card = page.locator(f"#card-{number}")
    factors = card.locator(".factors > li")
    assert factors.count() == len(moons.derivations["W1"].factors)
    assert card.locator(".factors math").count() >= factors.count()
    assert "right: " in card.locator(".witness").inner_text()
    assert moons.ledger["dW1"].sample is not None
    least = moons.ledger["dW1"].sample.numbers[0]
    assert least is not None
    shown = float(card.locator(".numbers td").first.inner_text())
    assert shown == pytest.approx(least, rel=1e-3)
    jacobian = card.locator("details", has_text="Jacobian of z1 by W1").first
    jacobian.locator("summary").click()
    text = jacobian.inner_text()
    for part in ("kronecker", "Stored", "for one upstream gradient", "times a random upstream differ by"):
        assert part in text
    assert jacobian.locator("canvas").count() == 1
    factors.first.locator("a.jump").click()
    assert page.locator("[aria-current=step] code").inner_text().startswith("dloss")


def test_the_list_of_jacobians_draws_what_is_opened(open_page: Open, moons: Explanation) -> None:
    page = open_page(moons)
    page.locator("#jacobians summary").first.click()
    page.wait_for_selector("#jacobians canvas")
    weights = next(k for k, j in enumerate(moons.jacobians) if (j.output, j.input) == ("z1", "W1"))
    page.locator("#jacobians summary").nth(weights).click()
    text = page.locator("#jacobians details").nth(weights).locator("figcaption").inner_text()
    assert text == f"∂z1/∂W1, row {moons.jacobians[weights].example}"
    axes = page.locator("#jacobians details").nth(weights).locator(".axes span").all_inner_texts()
    assert axes == ["W1: O1 (6) within blocks of I (2) →", "z1: O1 (6) ↓"]
    assert page.locator("#jacobians details").count() == len(moons.jacobians)


def test_a_heat_map_tells_its_numbers(open_page: Open, moons: Explanation) -> None:
    page = open_page(moons)
    sample = moons.ledger["z1"].sample
    assert sample is not None
    canvas = page.locator(".card:visible [data-main] canvas")
    canvas.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    said = page.locator(".card:visible [data-main] .readout").inner_text()
    name, value = said.split(" = ")
    assert name == "z1[1, 1]"
    assert float(value) == pytest.approx(sample.numbers[sample.shape[1] + 1], rel=1e-3)
    canvas.hover(position={"x": 2, "y": 2})
    assert page.locator(".card:visible [data-main] .readout").inner_text().startswith("z1[0, 0] = ")


def test_training_is_moved_through(open_page: Open, moons: Explanation) -> None:
    page = open_page(moons)

    def pictures() -> list[str]:
        canvases = ("#boundary", "#watched-values canvas")
        seen = [page.evaluate("s => document.querySelector(s).toDataURL()", each) for each in canvases]
        return [*seen, *(page.locator(f"#{each}-chart svg").inner_html() for each in ("loss", "norm"))]

    last = pictures()
    page.locator("#moment").focus()
    page.keyboard.press("Home")
    page.wait_for_timeout(100)
    first = moons.snapshots[0]
    assert page.locator("#moment-text").inner_text().startswith("epoch 0, step 0, loss ")
    assert float(page.locator("#moment-text").inner_text().split()[-1]) == pytest.approx(first.loss, rel=1e-3)
    assert all(a != b for a, b in zip(pictures(), last, strict=True))
    names = page.locator("#watched option").all_inner_texts()
    assert {"W1", "dW1", "z1"} <= set(names)
    for name in ("dW1", "z1"):
        page.select_option("#watched", name)
        assert page.locator("#norm-name").inner_text() == name
        assert name in page.locator("#watched-values figcaption").first.inner_text()


def test_findings_are_read(open_page: Open, moons: Explanation) -> None:
    page = open_page(moons)
    page.click("nav a[href='#health']")
    said = page.locator(".finding").inner_text()
    for part in ("Dead units", "a1", "3 of 6 units are dead", "the bias is low", "a smaller rate"):
        assert part in said


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("target", ["z1", "dW1"])
def test_every_text_has_contrast(open_page: Open, moons: Explanation, scheme: str, target: str) -> None:
    page = open_page(moons, scheme=scheme)
    page.click(f"#line-{_number(moons, target)}")
    page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    found = page.evaluate(CONTRAST)
    assert found["seen"] > 200
    assert found["poor"] == []


def test_the_switch_changes_the_colours(open_page: Open, moons: Explanation) -> None:
    page = open_page(moons, scheme="light")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    picture = "document.querySelector('.card:not([hidden]) canvas').toDataURL()"
    canvas = page.evaluate(picture)
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert page.evaluate(picture) != canvas
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == before
    assert page.evaluate(picture) == canvas


VIEWS = [(1024, 640), (1280, 720), (1366, 768), (1920, 1080), (390, 844), (360, 740)]


@pytest.mark.parametrize(("width", "height"), VIEWS)
def test_controls_line_and_card_are_in_view_at_every_step(
    open_page: Open, moons: Explanation, width: int, height: int
) -> None:
    page = open_page(moons, size={"width": width, "height": height})
    for line in moons.lines:
        seen = page.evaluate("""() => {
          const box = (s) => document.querySelector(s).getBoundingClientRect();
          const [line, card, list] = [box("[aria-current=step]"), box(".card:not([hidden])"), box("#program")];
          const controls = box("[data-step=on]");
          return { list: line.top >= list.top && Math.min(line.bottom, line.top + 24) <= list.bottom,
                   line: [line.top, Math.min(line.bottom, line.top + 24)], card: [card.top, card.top + 120],
                   controls: [controls.top, controls.bottom] };
        }""")
        assert seen.pop("list"), line
        for part, (top, bottom) in seen.items():
            assert top >= 0, (part, line)
            assert bottom <= height, (part, line)
        page.click("[data-step=on]")


@pytest.mark.parametrize(("width", "height"), VIEWS)
def test_panes_do_not_overlap_where_nothing_is_run(open_page: Open, width: int, height: int) -> None:
    """As of a rule, whose page has its docstring above them."""
    page = open_page(explain(softmax, np.eye(3, 4)), size={"width": width, "height": height})
    assert "Source\n" in page.locator(".introduction").inner_text()
    panes = [page.locator(f"#{name}-pane").bounding_box() for name in ("program", "card", "drawing")]
    for one, other in combinations(panes, 2):
        beside = max(one["x"], other["x"]) >= min(each["x"] + each["width"] for each in (one, other))
        below = max(one["y"], other["y"]) >= min(each["y"] + each["height"] for each in (one, other))
        assert beside or below


def test_a_link_to_a_line_opens_at_it(open_page: Open, moons: Explanation) -> None:
    page = open_page(moons, size={"width": 1024, "height": 640})
    number = _number(moons, "dW2")
    page.click(f"#line-{number}")
    page.wait_for_timeout(500)
    assert page.evaluate("location.hash") == f"#line-{number}"
    page.reload()
    page.wait_for_selector("html[data-ready]", state="attached")
    page.wait_for_timeout(300)
    assert page.evaluate("scrollY") == 0
    assert page.locator(".card:visible").get_attribute("id") == f"card-{number}"


def test_the_keys_step_wherever_the_focus_is(open_page: Open, moons: Explanation) -> None:
    page = open_page(moons)
    for key, number in [("ArrowRight", 1), ("End", len(moons.lines) - 1), ("Home", 0)]:
        page.keyboard.press(key)
        assert page.locator(".card:visible").get_attribute("id") == f"card-{number}"
    page.focus("#theme")
    page.keyboard.press("ArrowRight")
    assert page.locator(".card:visible").get_attribute("id") == "card-1"


def test_paper_has_every_card(open_page: Open, moons: Explanation) -> None:
    page = open_page(moons)
    page.emulate_media(media="print")
    assert page.locator(".card:visible").count() == len(moons.lines)
    assert page.locator(".card .formula:visible").count() >= len(moons.lines)
    empty = "canvas:visible, input:visible, button:visible, select:visible, .entry:visible, .lit:visible"
    assert page.locator(empty).count() == 0
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) <= len(moons.lines) / 2
    page.emulate_media(media="screen")
    assert page.locator(".card:visible").count() == 1


def test_without_javascript_every_line_is_read(browser: Any, moons: Explanation, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(render_page(moons), encoding="utf-8")
    context = browser.new_context(viewport=DESK, java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    assert page.locator(".card:visible").count() == len(moons.lines)
    dead = "button:visible, input:visible, canvas:visible, .values:visible, .introduction .live:visible"
    assert page.locator(dead).count() == 0
    page.locator(".line").nth(3).click()
    assert page.url.endswith("#card-3")
    assert page.locator(".card").nth(3).bounding_box()["y"] < 60
    assert "Without JavaScript" in page.locator("noscript").inner_text()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_never_scrolls_sideways(open_page: Open, moons: Explanation, scheme: str) -> None:
    page = open_page(moons, size=PHONE, scheme=scheme)
    assert page.locator("#drawing").is_hidden()
    page.click("#drawing-pane > summary")
    page.wait_for_selector("#drawing svg")
    page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    for line in moons.lines:
        page.evaluate("n => document.getElementById(`line-${n}`).click()", line.number)
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        assert page.evaluate("document.body.scrollWidth") <= 360


def test_hostile_names_do_nothing(open_page: Open, moons: Explanation) -> None:
    page = open_page(made_hostile(moons))
    page.click("[data-step=last]")
    page.locator("#jacobians summary").first.click()
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2


def test_the_digits_are_small_soon_ready_and_seen_as_images(open_page: Open) -> None:
    data = digits()
    network = Network(Standardise(), Linear(64, 256), ReLU(), Linear(256, 10), loss=SoftmaxCrossEntropy())
    network.standardise(data.x)
    record = explain(network, data.x[:32], data.t[:32])
    assert len(render_page(record).encode()) < 1_000_000
    page = open_page(record)
    assert int(page.evaluate("document.documentElement.dataset.ready")) > 0
    images = page.locator(".card:visible button[aria-pressed]").first
    assert images.inner_text() == "as 8 × 8 images"
    page.click(f"#line-{_number(record, 'dW1')}")
    assert page.locator(".card:visible [data-value=dz1] button").count() == 0  # 256 units are no image
    assert "and 58 more rows, 25" in page.locator(".card:visible .corner").inner_text()
    page.click(f"#line-{_number(record, record.lines[0].target)}")
    canvas = ".card:not([hidden]) [data-value=x] canvas"
    assert page.evaluate("s => document.querySelector(s).width", canvas) == 16 * 9 - 1
    page.locator(".card:visible [data-value=x] button").click()
    assert page.evaluate("s => document.querySelector(s).width", canvas) == 64

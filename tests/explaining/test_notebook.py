"""What a notebook shows: the teaching notebook is run from top to bottom, and everything has its HTML and text."""

from __future__ import annotations

import re
import warnings
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad
from handgrad import Embedding, Linear, Network, ReLU, SoftmaxCrossEntropy, Standardise, train
from handgrad.data import moons
from handgrad.training import History

with warnings.catch_warnings():  # what the tools of notebooks say on import is not about this package
    warnings.simplefilter("ignore")
    import nbformat
    from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "explain.ipynb"
ROWS = moons(rows=60)
REFUSED = {"script", "style", "svg", "link", "iframe", "form", "input"}
"""What JupyterLab takes out of a notebook that is not trusted."""


def network() -> Network:
    return Network(Standardise(), Linear(2, 5), ReLU(), Linear(5, 2), loss=SoftmaxCrossEntropy())


@pytest.fixture(scope="module")
def outputs() -> list[dict[str, Any]]:
    """Run the notebook in a kernel of its own, and return what its cells show, in order."""
    page = nbformat.read(NOTEBOOK, as_version=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        NotebookClient(page, timeout=300, kernel_name="python3", coalesce_streams=True).execute()
    return _outputs(page)


def _outputs(page: Any) -> list[dict[str, Any]]:
    return [output for cell in page.cells if cell.cell_type == "code" for output in cell.outputs]


def test_the_notebook_has_the_outputs_that_it_gives(outputs: list[dict[str, Any]]) -> None:
    """After a change: ``jupyter execute --inplace examples/explain.ipynb``."""
    stored = _outputs(nbformat.read(NOTEBOOK, as_version=4))
    assert [output["output_type"] for output in stored] == [output["output_type"] for output in outputs]
    for old, new in zip(stored, outputs, strict=True):
        texts = [each["text"] if "text" in each else each["data"]["text/plain"] for each in (old, new)]
        assert len({re.sub(r"\d[\d.,e+-]*", "#", text) for text in texts}) == 1  # in other numbers' rounding
    assert NOTEBOOK.stat().st_size < 600_000


def test_the_notebook_shows_networks_programs_explanations_histories_and_reports(
    outputs: list[dict[str, Any]],
) -> None:
    shown = [output["data"] for output in outputs if output["output_type"] == "execute_result"]

    assert [set(data) for data in shown] == [{"text/plain", "text/html"}] * 6
    made, program, explanation, page, history, report = shown
    assert made["text/plain"].startswith("Network(Linear(2, 6), ReLU()")
    assert "W1 (2, 6)" in made["text/html"]
    assert "dW1 = x.T @ dz1" in program["text/plain"]
    assert "<code>dW1 = x.T @ dz1</code>" in program["text/html"]
    assert "<mfrac><mrow><mi>∂</mi><mi>L</mi></mrow>" in explanation["text/html"]
    assert "$$" not in explanation["text/html"]
    assert re.fullmatch(r"a page of [23]\d\d,\d{3} bytes", page["text/plain"])
    assert page["text/html"].startswith(
        '<iframe title="explanation" sandbox="allow-scripts" srcdoc="&lt;!doctype'
    )
    assert "(I=2, O1=6)" in explanation["text/html"]
    assert "✓ right" in explanation["text/html"]
    assert '<img alt="the loss, epoch by epoch"' in history["text/html"]
    assert "data:image/png;base64," in history["text/html"]
    assert history["text/plain"].startswith("history: 40 epochs, finished")
    assert "wrong" in report["text/plain"]
    assert "2" in report["text/html"]


def test_the_notebook_prints_structures_and_findings(outputs: list[dict[str, Any]]) -> None:
    jacobians, findings = (output["text"] for output in outputs if output["output_type"] == "stream")

    assert re.search(r"z1:W1 +kronecker .* of 72 numbers", jacobians)
    assert re.search(r"a1:z1 +diagonal", jacobians)
    assert findings.startswith("dead-units at a1\n- 6 of the 6 units")
    assert "bias b1 is -20" in findings


class Tags(HTMLParser):
    """Collects what a page is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.used: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: D102
        self.used.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:  # noqa: D102
        assert self.open.pop() == tag


def shown_objects() -> dict[str, Any]:
    made = network()
    history = train(made, ROWS.x, ROWS.t, validation=0.2, epochs=2, engine="reference")
    report = handgrad.check(lambda x: x * x, lambda dy, x: (dy * x,), inputs=(ROWS.x[:3],))
    words = Network(Embedding(4, 5), Linear(5, 3), loss=SoftmaxCrossEntropy(), inputs=())
    return {
        "explanation of an embedding": handgrad.explain(words, np.arange(6) % 4, np.arange(6) % 3),
        "network": made, "network without a loss": Network(Linear(2, 3)), "program": made.program(),
        "explanation": handgrad.explain(made, ROWS.x[:6], ROWS.t[:6]), "history": history,
        "history without an epoch": History("accuracy", stopped="interrupted"), "report": report,
    }  # fmt: skip


SHOWN = shown_objects()


@pytest.mark.parametrize("name", SHOWN)
def test_html_needs_nothing_from_outside_and_keeps_the_notebooks_colours(name: str) -> None:
    bundle = SHOWN[name]._repr_mimebundle_()
    page = Tags()
    page.feed(bundle["text/html"])

    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"] == str(SHOWN[name])
    assert bundle["text/html"] == SHOWN[name]._repr_html_()
    assert page.open == []
    assert not page.used & REFUSED
    assert all(address.startswith("data:image/png;base64,") for address in page.addresses)
    assert "background" not in bundle["text/html"]


def test_what_looks_like_html_is_shown_as_it_is() -> None:
    made = Network(Linear(2, 2))

    assert "a &lt; b" in handgrad.notebook_html.table(("line",), [("a < b",)])
    assert "&lt;i&gt;" in handgrad.notebook_html.heading("<i>")
    assert "<code></code>" not in made._repr_html_()


def test_an_explanation_in_a_notebook_begins_with_what_is_ill() -> None:
    ill = network()
    ill.standardise(ROWS.x)
    ill.parameters["b1"][:] = -30

    page = handgrad.explain(ill, ROWS.x[:32], ROWS.t[:32])

    assert page._repr_html_().index("dead units at a1") < page._repr_html_().index("<table>")
    assert "dead-units at a1: 5 of the 5 units" in str(page)
    assert "Health: nothing found." in SHOWN["explanation"]._repr_html_()


def test_a_history_says_whose_weights_are_kept() -> None:
    made = network()
    history = train(made, ROWS.x, ROWS.t, validation=0.3, epochs=3, patience=3, engine="reference")

    assert str(history).endswith(f"; epoch {history.best_epoch}'s weights")
    assert str(History("r2")) == "history: no epoch, finished"
    assert np.isfinite(history.epochs[-1].loss)

"""A training's history: plain data that goes to JSON Lines and back, and a picture."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from handgrad import DataError, History
from handgrad.training import EpochRecord
from handgrad.training.training_state import EpochEnd

RECORDS = [EpochRecord(k, 1.5 / k, 2.0 / k, 1 - 1 / k, 0.01, 0.25) for k in (1, 2, 3)]


def history(records: list[EpochRecord]) -> History:
    return History("accuracy", records, "early", 2, {"engine": "reference", "rows": 70})


def test_there_and_back() -> None:
    """A head, then one line an epoch; reading gives the same history."""
    text = history(RECORDS).to_json_lines()
    head, *lines = text.splitlines()
    assert json.loads(head) == {
        "metric": "accuracy", "stopped": "early", "best_epoch": 2, "facts": {"engine": "reference", "rows": 70},
    }  # fmt: skip
    assert [json.loads(line) for line in lines] == [asdict(record) for record in RECORDS]
    assert History.from_json_lines(text) == history(RECORDS)


NO_HISTORIES = [
    "",
    "{",
    "[]\n",
    "{}\n",
    '{"metric": "r2", "more": 1}\n',
    '{"metric": "r2"}\n{}\n',
    '{"metric": "r2"}\n3\n',
]


@pytest.mark.parametrize("text", NO_HISTORIES)
def test_what_is_no_history_is_refused(text: str) -> None:
    """Naming the file."""
    with pytest.raises(DataError, match=r"^old/history\.jsonl: not a history: "):
        History.from_json_lines(text, "old/history.jsonl")


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_curve_is_a_picture(tmp_path: Path, suffix: str) -> None:
    """In each of the formats; no window, no warning."""
    path = tmp_path / f"curve.{suffix}"
    history(RECORDS).plot(path, title="network 64 → 10 · 650 parameters")
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize(
    "records",
    [
        [],
        [EpochRecord(1, 0.0, None, None, 0.1, 0.1)],
        [EpochRecord(k, -1.0 + k, None, None, 0.1, 0.1) for k in range(1, 60)],
        [EpochRecord(1, 1e-300, 0.0, -5.0, 0.1, 0.1)],
    ],
    ids=["nothing", "one without validation", "losses below zero", "a loss of zero"],
)
def test_every_history_can_be_drawn(tmp_path: Path, records: list[EpochRecord]) -> None:
    """None at all, a single epoch, and losses that no logarithm takes."""
    History("r2", records).plot(tmp_path / "curve.svg")
    text = (tmp_path / "curve.svg").read_text(encoding="utf-8")
    assert "<!-- training -->" in text
    assert ("<!-- validation R² -->" in text) == any(r.validation_loss is not None for r in records)
    assert "<!-- kept -->" not in text


def test_the_curve_shows_both_losses_the_metric_and_which_epoch_is_best(tmp_path: Path) -> None:
    """With the metric's name on its axis and the network's title above."""
    history(RECORDS).plot(tmp_path / "curve.svg", title="moons")
    text = (tmp_path / "curve.svg").read_text(encoding="utf-8")
    for shown in ("moons", "training", "validation", "validation accuracy", "epoch", "loss", "best"):
        assert f"<!-- {shown} -->" in text, shown
    assert text.index("<!-- epoch -->") > text.index('id="axes_2"')  # below the lower panel


def test_losses_are_drawn_by_their_logarithms_where_they_have_some(tmp_path: Path) -> None:
    for lowest, is_logarithmic in ((0.5, True), (0.0, False)):
        records = [
            EpochRecord(k, loss, None, None, 0.1, 0.1) for k, loss in enumerate((20.0, 1.0, lowest), 1)
        ]
        History("r2", records).plot(tmp_path / "curve.svg")
        text = (tmp_path / "curve.svg").read_text(encoding="utf-8")
        assert ("10^{" in text) == is_logarithmic


def test_a_history_is_shown_in_one_line_and_in_a_notebook_with_its_curve() -> None:
    """The losses are those of the epoch whose weights are kept: the best one, or the last."""
    kept = history(RECORDS)
    assert str(kept) == (
        "history: 3 epochs, early, loss 0.75, validation loss 1, accuracy 0.5; epoch 2's weights"
    )
    last = History("r2", [EpochRecord(k, 1.5 / k, None, None, 0.1, 0.1) for k in (1, 2, 3)])
    assert str(last) == "history: 3 epochs, finished, loss 0.5"
    assert str(History("r2", stopped="interrupted")) == "history: no epoch, interrupted"
    page = kept._repr_html_()
    assert page.startswith("<p><strong>history: 3 epochs, early, loss 0.75, ")
    assert "data:image/png;base64,iVBOR" in page
    assert History("r2")._repr_html_() == "<p><strong>history: no epoch, finished</strong></p>"


@pytest.mark.parametrize("losses", [(0.30, 0.26), (2.303, 2.300), (1234.0, 1230.0)])
def test_labels_within_a_decade_are_not_cut_off(tmp_path: Path, losses: tuple[float, float]) -> None:
    records = [EpochRecord(k, loss, loss, 0.5, 0.1, 0.1) for k, loss in enumerate(losses, 1)]
    History("accuracy", records).plot(tmp_path / "curve.png", title="one line\nand another")
    image = imread(tmp_path / "curve.png")
    for edge in (image[0], image[-1], image[:, 0], image[:, -1]):
        assert edge.min() == 1  # white


def test_without_validation_rows_the_best_is_the_last() -> None:
    """So that a checkpoint has one copy of all arrays, not the first ones too."""
    first, second = {"W": np.zeros(2)}, {"W": np.ones(2)}
    end = EpochEnd(0, first, first).after(EpochRecord(1, 0.5, None, None, 0.1, 1.0), second)
    assert end.best is end.arrays is second
    watched = EpochEnd(0, first, first).after(EpochRecord(1, 0.5, 0.4, None, 0.1, 1.0), second)
    worse = watched.after(EpochRecord(2, 0.4, 0.6, None, 0.1, 1.0), {"W": np.full(2, 3.0)})
    assert (worse.best, worse.best_epoch, worse.waited) == (second, 1, 1)

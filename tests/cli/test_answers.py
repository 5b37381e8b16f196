"""`handgrad predict` and `handgrad evaluate`: the same answers whatever the file, named as the columns are."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad.data import read_csv
from handgrad.runs import load_run

from ..conftest import Command


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_answers_are_the_networks(at: Command, runs: Path) -> None:
    """The most likely class by its name, with its probability; one row for each, in the file's order."""
    rows = table(at("predict", "runs/pets", "pets.csv").stdout)
    network = load_run(runs / "runs" / "pets").network
    shares = network.predict(read_csv(runs / "pets.csv", target="kept").x)
    assert [row["answer"] for row in rows] == [["no", "yes"][k] for k in shares.argmax(axis=1)]
    assert {row["answer"] for row in rows} == {"no", "yes"}
    np.testing.assert_allclose([float(row["probability"]) for row in rows], shares.max(axis=1), atol=1e-6)


def test_columns_are_found_by_name(at: Command, runs: Path) -> None:
    """Shuffled columns, and others that the training did not have, text even, change no answer."""
    answers = at("predict", "runs/pets", "pets.csv").stdout
    assert at("predict", "runs/pets", "shuffled.csv").stdout == answers
    assert at("predict", "runs/pets", "turned.csv").stdout == answers


@pytest.mark.parametrize("source", ["x.npy", "pets.npz"])
def test_arrays_without_names_are_taken_as_they_are(at: Command, runs: Path, source: str) -> None:
    """The columns of an array stand in the order of the training."""
    assert at("predict", "runs/pets", source).stdout == at("predict", "runs/pets", "pets.csv").stdout


def test_one_output_answers_for_two_classes(at: Command, runs: Path) -> None:
    """The probability of a yes, or of a no when that is more likely: never below a half."""
    rows = table(at("predict", "runs/coin", "pets.csv").stdout)
    p = load_run(runs / "runs" / "coin").network.predict(read_csv(runs / "pets.csv", target="kept").x)[:, 0]
    assert p.shape == (60,)
    assert [row["answer"] for row in rows] == np.where(p > 0.5, "yes", "no").tolist()
    np.testing.assert_allclose([float(row["probability"]) for row in rows], np.maximum(p, 1 - p), atol=1e-6)


def test_values_are_named_after_their_columns(at: Command, runs: Path) -> None:
    """One target, or several in the order asked for."""
    rows = table(at("predict", "runs/prices", "prices.csv").stdout)
    data = read_csv(runs / "prices.csv", target="price")
    network = load_run(runs / "runs" / "prices").network
    np.testing.assert_array_equal([np.float32(row["price"]) for row in rows], network.predict(data.x)[:, 0])
    both = table(at("predict", "runs/both", "both.csv").stdout)
    assert list(both[0]) == ["price", "rent"]
    network = load_run(runs / "runs" / "both").network
    np.testing.assert_array_equal(
        [[np.float32(row["price"]), np.float32(row["rent"])] for row in both], network.predict(data.x)
    )


def test_json_is_one_object_a_row(at: Command, runs: Path) -> None:
    """With the same names and values as the table's."""
    lines = at("predict", "runs/pets", "pets.csv", "--json").stdout.splitlines()
    rows = table(at("predict", "runs/pets", "pets.csv").stdout)
    assert [{k: str(v) for k, v in json.loads(line).items()} for line in lines] == rows
    assert isinstance(json.loads(lines[0])["probability"], float)


@pytest.mark.parametrize("run", ["pets", "coin"])
def test_every_probability_is_a_column_when_asked_for(at: Command, runs: Path, run: str) -> None:
    """Of one output for two classes too; the other columns stay."""
    rows = table(at("predict", f"runs/{run}", "pets.csv", "--probabilities").stdout)
    alone = table(at("predict", f"runs/{run}", "pets.csv").stdout)
    assert list(rows[0]) == ["answer", "probability", "probability of no", "probability of yes"]
    assert [{name: row[name] for name in ("answer", "probability")} for row in rows] == alone
    p = load_run(runs / "runs" / run).network.predict(read_csv(runs / "pets.csv", target="kept").x)[:, -1]
    np.testing.assert_allclose([float(row["probability of yes"]) for row in rows], p, atol=1e-6)
    np.testing.assert_allclose([float(row["probability of no"]) for row in rows], 1 - p, atol=1e-6)


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_answers_go_to_a_file(at: Command, runs: Path, tmp_path: Path, more: list[str]) -> None:
    """The file holds what standard output would; folders are made, and nothing else is left in them."""
    out = tmp_path / "new" / "answers.csv"
    done = at("predict", "runs/pets", "pets.csv", *more, "--out", out)
    assert (done.stdout, done.stderr) == ("", f"wrote 60 answers to {out}\n")
    assert out.read_text() == at("predict", "runs/pets", "pets.csv", *more).stdout
    assert list(out.parent.iterdir()) == [out]


def test_a_file_of_answers_is_replaced_only_by_a_whole_one(at: Command, runs: Path, tmp_path: Path) -> None:
    """A prediction that fails leaves the old answers."""
    out = tmp_path / "answers.csv"
    out.write_text("old")
    at("predict", "runs/pets", "text.csv", "--out", out, code=1)
    assert out.read_text() == "old"
    at("predict", "runs/pets", "more.csv", "--out", out)
    assert len(out.read_text().splitlines()) == 26


def test_answers_go_down_a_pipe_that_has_a_name(at: Command, runs: Path, tmp_path: Path) -> None:
    """What is no file is written to, not replaced by one: else --out /dev/null would be the end of it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    at("predict", "runs/pets", "pets.csv", "--out", pipe)
    assert pipe.is_fifo()
    assert os.read(reader, 2**16).decode() == at("predict", "runs/pets", "pets.csv").stdout
    os.close(reader)


# ------------------------------------------------------------------------------------------ evaluate


def score(at: Command, *arguments: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(at("evaluate", *arguments, "--json").stdout)
    return result


@pytest.mark.parametrize(
    ("run", "metric"), [("pets", "accuracy"), ("prices", "r2"), ("both", "r2"), ("coin", "accuracy")]
)
def test_a_run_scores_its_own_test_rows_as_the_training_did(
    at: Command, runs: Path, run: str, metric: str
) -> None:
    """The same rows are found again, and the score is the run's own result."""
    own = load_run(runs / "runs" / run).results[f"test_{metric}"]
    result = score(at, f"runs/{run}")
    assert (result["rows"], result[metric]) == (12, own)


def test_the_score_of_other_rows_is_that_of_their_answers(at: Command, runs: Path) -> None:
    """Accuracy and loss, counted from the answers of `handgrad predict`."""
    answers = table(at("predict", "runs/pets", "more.csv").stdout)
    said = [row["kept"] for row in table((runs / "more.csv").read_text())]
    right = [row["answer"] == kept for row, kept in zip(answers, said, strict=True)]
    p = [
        float(row["probability"]) if ok else 1 - float(row["probability"])
        for row, ok in zip(answers, right, strict=True)
    ]
    result = score(at, "runs/pets", "more.csv")
    assert (result["rows"], result["accuracy"]) == (25, pytest.approx(sum(right) / 25))
    assert result["loss"] == pytest.approx(-np.log(p).mean(), abs=1e-5)


def test_columns_are_found_by_name_when_scoring(at: Command, runs: Path) -> None:
    """Turned columns and another number column change no score."""
    assert score(at, "runs/pets", "turned.csv") == score(at, "runs/pets", "pets.csv")


def test_classes_are_matched_by_name(at: Command, runs: Path, tmp_path: Path) -> None:
    """A file that has only two of three classes scores by their names, not by their own numbers."""
    at("train", "three.csv", "--target", "kept", "--hidden", "30", "--epochs", "120", "--learning-rate", "0.05",
       "--validation", "0", "--out", "runs/three")  # fmt: skip
    rows = [line for line in (runs / "three.csv").read_text().splitlines() if not line.endswith(",a")]
    (tmp_path / "two.csv").write_text("\n".join(rows) + "\n")
    answers = table(at("predict", "runs/three", tmp_path / "two.csv").stdout)
    right = [row["answer"] == line[-1] for row, line in zip(answers, rows[1:], strict=True)]
    result = score(at, "runs/three", str(tmp_path / "two.csv"))
    assert (result["rows"], result["accuracy"]) == (40, pytest.approx(np.mean(right)))
    assert result["accuracy"] > 0.6


def test_a_source_with_targets_of_its_own_needs_no_name_for_them(at: Command, runs: Path) -> None:
    """A table's column is the run's; an .npz file has its own, an .npy file's are named."""

    def numbers(*arguments: str) -> dict[str, float]:
        return {name: value for name, value in score(at, *arguments).items() if isinstance(value, float)}

    expected = numbers("runs/pets", "pets.csv")
    assert expected.keys() >= {"loss", "accuracy", "roc_auc", "calibration_error"}
    assert numbers("runs/pets", "pets.npz") == pytest.approx(expected, rel=1e-6)
    np.save(runs / "said.npy", np.load(runs / "pets.npz")["t"])
    assert numbers("runs/pets", "x.npy", "--target", "said.npy") == pytest.approx(expected, rel=1e-6)


def test_a_column_of_another_name_is_named(at: Command, runs: Path, tmp_path: Path) -> None:
    """--target says what the column is called in the other file."""
    (tmp_path / "other.csv").write_text((runs / "pets.csv").read_text().replace("kept", "taken"))
    at("evaluate", "runs/pets", tmp_path / "other.csv", code=1)
    result = score(at, "runs/pets", str(tmp_path / "other.csv"), "--target", "taken")
    assert result == score(at, "runs/pets", "pets.csv")


def test_a_task_that_was_asked_for_is_kept(at: Command, runs: Path) -> None:
    """Whole numbers that look like classes are values to a run that was trained on values."""
    done = at(
        "train",
        "counts.csv",
        "--target",
        "n",
        "--task",
        "regression",
        "--epochs",
        "2",
        "--out",
        "runs/n",
        "--json",
    )
    assert score(at, "runs/n")["r2"] == json.loads(done.stdout)["test_r2"]
    assert score(at, "runs/n", "counts.csv")["rows"] == 60


def test_the_table_for_people_has_the_same_numbers(at: Command, runs: Path) -> None:
    """Four digits of each."""
    result = score(at, "runs/pets", "more.csv")
    lines = at("evaluate", "runs/pets", "more.csv").stdout.split("\n\n")[0].splitlines()
    names = ("loss", "accuracy", "balanced accuracy", "f1", "roc auc")
    expected = {name: f"{result[name.replace(' ', '_')]:.4g}" for name in names}
    assert dict(re.split("  +", line.strip()) for line in lines) == {"rows": "25", **expected}

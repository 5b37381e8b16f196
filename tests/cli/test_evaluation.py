"""What `handgrad evaluate` and the end of `handgrad train` state of a network: table, warning, JSON, picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from handgrad import SoftmaxCrossEntropy
from handgrad.cli.evaluation import Evaluation
from handgrad.data import load, split

from ..conftest import Command, Server


@pytest.fixture(scope="module")
def rare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a table with 12 yeses among 600 rows, in a column that has nothing to do with them."""
    folder = tmp_path_factory.mktemp("rare")
    x = np.random.default_rng(0).normal(size=600).round(3)
    lines = [f"{value},{'yes' if k % 50 == 0 else 'no'}" for k, value in enumerate(x)]
    (folder / "rare.csv").write_text("\n".join(["x,$fraud$", *lines]) + "\n")
    return folder


TRAIN = [
    "train",
    "rare.csv",
    "--target",
    "$fraud$",
    "--hidden",
    "4",
    "--epochs",
    "20",
    "--learning-rate",
    "0.01",
]


def test_what_the_majority_would_do_as_well_is_a_warning(server: Server, rare: Path) -> None:
    """The last lines of the training; balanced weights, which cost accuracy on purpose, have none."""
    at = server.command_in(rare)
    done = at(*TRAIN, "--out", "alone")
    *_, warning, remedy = done.stderr.splitlines()
    assert warning == ("Warning: accuracy 0.9833 is no better than always predicting 'no', which has 0.9833")
    assert remedy.startswith("No single change mended it")  # the column has nothing to do with it
    assert [line.split() for line in done.stdout.splitlines()[-4:]] == [
        ["targets", "down,", "predictions", "across"],
        ["recall", "no", "yes"],
        ["no", "1", "118", "0"],
        ["yes", "0", "2", "0"],
    ]
    result = json.loads(at("evaluate", "alone", "--json").stdout)
    advice = "; train with --class-weight balanced to find rare classes"  # where nothing is tried
    assert result["warning"] == warning.removeprefix("Warning: ") + advice
    assert at("evaluate", "alone").stderr.splitlines()[-1] == warning + advice
    assert result["recall"] == {"no": 1.0, "yes": 0.0}
    assert (result["balanced_accuracy"], result["majority_share"]) == (0.5, 118 / 120)
    assert "Warning" not in at(*TRAIN, "--class-weight", "balanced", "--out", "balanced").stderr


@pytest.mark.parametrize(("found", "warns"), [(4, False), (0, True)])
def test_rare_rows_that_are_found_may_cost_accuracy(found: int, warns: bool) -> None:
    """Of 9 yeses among 120 rows 4 are found, at the price of 4 noes; with none found, always no is as good."""
    t = np.repeat([0, 1], [111, 9])
    yes = np.zeros(120)
    yes[:found] = yes[120 - found :] = 1
    evaluation = Evaluation.of(SoftmaxCrossEntropy(), np.stack([1 - yes, yes], axis=1), t, ["no", "yes"], ())
    assert evaluation.scores["accuracy"] == evaluation.scores["majority_share"] == 0.925
    assert (evaluation.warning is not None) == warns


def test_a_fit_worse_than_the_mean_is_a_warning(at: Command, runs: Path) -> None:
    """In the last lines, and in JSON; one that is better has none."""
    slow = ["--hidden", "", "--optimiser", "SGD", "--learning-rate", "1.05", "--epochs", "1"]
    more = ["--batch-size", "100", "--standardise-targets", "false", "--target", "price"]
    done = at("train", "prices.csv", *slow, *more, "--out", "runs/worse")
    result = json.loads(at("evaluate", "runs/worse", "--json").stdout)
    assert result["r2"] < 0
    expected = f"worse than the mean: r2 {result['r2']:.4g}; always predicting the mean has 0"
    assert done.stderr.splitlines()[-2] == f"Warning: {expected}"
    assert result["warning"] == expected
    good = ["--hidden", "", "--learning-rate", "0.05", "--epochs", "60", "--target", "price"]
    assert "Warning" not in at("train", "prices.csv", *good, "--out", "runs/better").stderr


def test_errors_of_several_targets_are_a_row_each(at: Command, runs: Path) -> None:
    """Their units differ; the numbers are those of the predictions."""
    result = json.loads(at("evaluate", "runs/both", "both.csv", "--json").stdout)
    answers = [line.split(",") for line in at("predict", "runs/both", "both.csv").stdout.splitlines()[1:]]
    error = np.array(answers, float) - load(str(runs / "both.csv"), target=["price", "rent"]).t
    own = [result["targets"][name] for name in ("price", "rent")]
    assert [each["mean_absolute_error"] for each in own] == pytest.approx(abs(error).mean(axis=0))
    assert [each["root_mean_squared_error"] for each in own] == pytest.approx((error**2).mean(axis=0) ** 0.5)
    lines = [line.split() for line in at("evaluate", "runs/both", "both.csv").stdout.splitlines()]
    assert lines[-2] == ["price", *(f"{own[0][name]:.4g}" for name in own[0])]


@pytest.mark.parametrize("run", ["pets", "coin", "prices", "both"])
def test_there_is_a_picture(at: Command, runs: Path, tmp_path: Path, run: str) -> None:
    """Beside the run, of its test rows; elsewhere where it is asked for."""
    assert (runs / "runs" / run / "evaluation.png").read_bytes().startswith(b"\x89PNG")
    at("evaluate", f"runs/{run}", "--picture", tmp_path / "own.png")
    assert (tmp_path / "own.png").read_bytes().startswith(b"\x89PNG")


def test_one_output_for_two_classes_scores_as_two_outputs(at: Command, runs: Path) -> None:
    """The matrix is that of the answers of `handgrad predict`."""
    for run in ("pets", "coin"):
        result = json.loads(at("evaluate", f"runs/{run}", "pets.csv", "--json").stdout)
        said = [
            line.split(",")[0] for line in at("predict", f"runs/{run}", "pets.csv").stdout.splitlines()[1:]
        ]
        kept = load(str(runs / "pets.csv"), target="kept").t
        expected = np.zeros((2, 2), int)
        np.add.at(expected, (kept, [["no", "yes"].index(each) for each in said]), 1)
        assert result["confusion_matrix"] == expected.tolist()
        assert 0 <= result["roc_auc"] <= 1


def test_of_many_classes_the_worst_are_shown(handgrad: Command, tmp_path: Path) -> None:
    """With their recall and their rows; JSON has all of them. Odd names are drawn as they are."""
    rng = np.random.default_rng(0)
    t = np.repeat(np.arange(15), 20)
    names = ["$\\frac$", "日本", "a" * 40, *"bcdefghijklm"]
    x = (t + rng.normal(size=300) * 0.4).round(3)
    lines = [f"{value},{names[k]}" for value, k in zip(x, t, strict=True)]
    (tmp_path / "many.csv").write_text("\n".join(["x,t", *lines]) + "\n", encoding="utf-8")
    done = handgrad("train", "many.csv", "--target", "t", "--hidden", "9", "--epochs", "1", "--out", "run")
    table = [line.split() for line in done.stdout.splitlines()[-6:]]
    assert table[0] == ["class,", "worst", "first", "recall", "rows"]
    assert {row[-1] for row in table[1:]} == {"4"}
    recall = [float(row[-2]) for row in table[1:]]
    result = json.loads(handgrad("evaluate", "run", "--json").stdout)
    assert recall == sorted(result["recall"].values())[:5]
    assert len(result["recall"]) == 15
    assert len(split(load(str(tmp_path / "many.csv"), target="t")).test) == result["rows"] == 60

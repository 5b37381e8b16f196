"""A text from one command to the next: trained on, scored, resumed, and more of it written."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np

from handgrad.runs import load_run

from ..conftest import Command

SMALL = ["--context", "6", "--width", "8", "--heads", "2", "--blocks", "2", "--dropout", "0"]


def test_a_network_learns_a_text_and_writes_it(handgrad: Command, tmp_path: Path) -> None:
    """After some epochs it has the rhyme by heart; the settings name every size."""
    (tmp_path / "rhyme.txt").write_text("one two three four " * 60)
    handgrad("train", "rhyme.txt", *SMALL, "--epochs", "40", "--learning-rate", "0.02", "--out", "run")
    run = load_run(tmp_path / "run")
    assert run.entries == run.classes == tuple(" efhnortuw")
    assert run.results["test_accuracy"] > 0.8
    settings = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert settings["network"]["transformer"] == {"width": 8, "heads": 2, "blocks": 2, "recompute": False}
    assert (settings["data"]["context"], settings["training"]["batch_size"]) == (6, 4)
    assert settings["training"]["optimiser"] == {"type": "AdamW", "learning_rate": 0.02}
    text = ["generate", "run", "--prompt", "one two th", "--tokens", "14"]
    assert handgrad(*text, "--temperature", "0").stdout == "one two three four one t\n"
    assert json.loads(handgrad(*text, "--top-k", "1", "--json").stdout) == {
        "prompt": "one two th",
        "text": "ree four one t",
    }
    other = tmp_path / "other.txt"
    other.write_text("four three two one " * 5)
    scores = json.loads(handgrad("evaluate", "run", "other.txt", "--json").stdout)
    assert scores["rows"] == (95 - 1) // 6
    assert scores["loss"] > 1 > json.loads(handgrad("evaluate", "run", "--json").stdout)["loss"]


def test_a_training_on_a_text_is_resumed(handgrad: Command, tmp_path: Path) -> None:
    """With the same results as if it had not stopped; another context is another training."""
    (tmp_path / "rhyme.txt").write_text("one two three four " * 20)
    train = ["train", "rhyme.txt", *SMALL, "--epochs"]
    handgrad(*train, "2", "--out", "whole")
    config = tmp_path / "schedule.toml"
    config.write_text('[training]\nschedule = "Constant"\n')
    for epochs, folder in (("1", "part"), ("2", "whole")):
        handgrad(*train, epochs, "--config", config, "--out", folder, "--overwrite")
    done = handgrad("train", "--resume", "part", "--context", "5", code=1)
    assert "--context is 5, and the run in part has 6" in done.stderr
    handgrad("train", "--resume", "part", "--epochs", "2")
    whole, part = (load_run(tmp_path / name).network.arrays for name in ("whole", "part"))
    for name, array in whole.items():
        np.testing.assert_array_equal(part[name], array)


def test_layers_in_a_file_take_the_place_of_the_transformer(handgrad: Command, tmp_path: Path) -> None:
    """The other defaults of texts stay."""
    (tmp_path / "rhyme.txt").write_text("one two three four " * 20)
    (tmp_path / "bigram.toml").write_text(
        "[data]\nsource = 'rhyme.txt'\ncontext = 4\n[network]\nlayers = [{type = 'Embedding', entries = 10, features = 10}]\n"
    )
    handgrad("train", "--config", "bigram.toml", "--epochs", "1", "--out", "run")
    settings = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert "transformer" not in settings["network"]
    assert settings["training"]["optimiser"] == {"type": "AdamW", "learning_rate": 0.002}
    assert len(handgrad("generate", "run", "--tokens", "7").stdout) == 7 + len("\n")


def test_characters_are_weighted_by_how_often_they_come(handgrad: Command, tmp_path: Path) -> None:
    """As often as in the training windows, whose targets are a matrix."""
    (tmp_path / "rhyme.txt").write_text("one two three four " * 20)
    handgrad("train", "rhyme.txt", *SMALL, "--epochs", "1", "--class-weight", "balanced", "--out", "run")
    run = load_run(tmp_path / "run")
    weights = dict(zip(run.classes, run.network.loss.class_weight, strict=True))
    assert weights["w"] > 3 * weights["e"] > 0

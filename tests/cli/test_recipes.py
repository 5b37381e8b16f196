"""Settings that come with the package: they are read, build their networks and train."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from handgrad.configuration import RECIPES, read_configuration, write_configuration
from handgrad.data import Dataset
from handgrad.errors import ConfigurationError
from handgrad.runs import load_run

from ..conftest import Command
from .conftest import write_idx

SHAPES = {"lenet": (784,), "resnet": (32, 32, 3), "series": (24, 5)}


@pytest.mark.parametrize("name", SHAPES)
def test_a_recipe_builds_its_network_for_the_classes_there_are(name: str) -> None:
    configuration = read_configuration(Path(name), {"data.source": "images"})
    x = np.zeros((12, *SHAPES[name]), np.uint8)
    data = Dataset(name, x, np.arange(12) % 6, "classification", tuple("abcdef"))
    network = configuration.build(data)
    assert network.output_shape == ("n", 6)
    assert network.predict(x).shape == (12, 6)


def test_the_recipe_of_a_text_is_what_a_text_is_trained_with() -> None:
    recipe, text = (
        read_configuration(*given) for given in ((Path("gpt"), {}), (None, {"data.source": "alice"}))
    )
    assert write_configuration(recipe) == write_configuration(text)
    assert {*RECIPES} == {*SHAPES, "gpt"}
    network = tomllib.loads(write_configuration(text))["network"]
    assert network == {
        "dropout": 0.2,
        "layers": [],
        "transformer": {"width": 128, "heads": 4, "blocks": 4, "recompute": False},
        "dtype": "float32",
    }


def test_a_recipe_is_shown_without_its_data(handgrad: Command) -> None:
    """Its sizes are those that it states; a norm is one line."""
    shown = handgrad("show", "--config", "resnet")
    assert "without the data, of rows (32, 32, 3) and 10 classes" in shown.stderr
    assert sum(line.endswith(" BatchNorm()") for line in shown.stdout.splitlines()) == 7


def test_lenet_trains_from_the_command_line(handgrad: Command, tmp_path: Path) -> None:
    """On a few random digits; options go over the recipe, and the run's settings are all of it."""
    rng = np.random.default_rng(0)
    for part, rows in (("train", 30), ("t10k", 10)):
        write_idx(tmp_path / f"{part}-images-idx3-ubyte", rng.integers(0, 256, (rows, 28, 28), np.uint8))
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte", (np.arange(rows) % 10).astype(np.uint8))
    done = handgrad("train", tmp_path, "--config", "lenet", "--epochs", "1", "--out", "run")
    assert "· 61,706 parameters" in done.stderr
    settings = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert (settings["training"]["epochs"], settings["training"]["batch_size"]) == (1, 64)
    assert settings["network"]["layers"][-1] == {"type": "Linear", "inputs": 84}
    assert not (tmp_path / "run" / "explanation.html").exists(), "its page takes long"


@pytest.mark.mnist
def test_lenet_reads_mnist_in_five_epochs(handgrad: Command) -> None:
    """988 of 1,000 test digits or more."""
    results = json.loads(handgrad("train", "--config", "lenet", "--json").stdout)
    assert (results["epochs"], results["test_accuracy"] >= 0.988) == (5, True)


def test_a_small_resnet_tells_colours_apart(handgrad: Command, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, colour in (("red", (200, 60, 60)), ("blue", (60, 60, 200))):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for k in range(40):
            pixels = np.clip(rng.normal(colour, 40, (32, 32, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pictures" / name / f"{k}.png")
    handgrad("train", "pictures", "--config", "resnet", "--epochs", "2", "--batch-size", "8", "--out", "run")
    run = load_run(tmp_path / "run")
    assert run.classes == ("blue", "red")
    assert run.results["test_accuracy"] == 1
    handgrad("evaluate", "run", "pictures", "--json")
    answers = handgrad("predict", "run", "pictures/red").stdout.splitlines()
    assert [line.partition(",")[0] for line in answers] == ["answer", *["red"] * 40]


def test_a_series_with_one_test_row_is_measured_at_that_row(handgrad: Command, tmp_path: Path) -> None:
    """The last one; its mean absolute and root mean squared error are one number, and there is no variance to explain."""
    values = [round(float(np.sin(k / 3)), 5) for k in range(60)]
    (tmp_path / "wave.csv").write_text("y\n" + "".join(f"{value}\n" for value in values))
    options = ("--target", "y", "--test", "0.01", "--epochs", "2", "--out", "run")
    found = json.loads(handgrad("train", "wave.csv", "--config", "series", *options, "--json").stdout)
    window = np.array(values[-25:-1])[None, :, None]
    error = abs(load_run(tmp_path / "run").network.predict(window).item() - values[-1])
    for name in ("test_root_mean_squared_error", "test_mean_absolute_error"):
        np.testing.assert_allclose(found[name], error, rtol=1e-5)
    assert found["test_r2"] == 0


def test_a_file_of_the_same_name_goes_before_a_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lenet").write_text("[training]\nepochs = 77\n")
    assert read_configuration(Path("lenet"), {}).training.epochs == 77


def test_a_recipe_is_found_and_has_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=r"^lenett: No such file") as caught:
        read_configuration(Path("lenett"), {})
    assert caught.value.fix == "of recipes, did you mean 'lenet'?"
    with pytest.raises(
        ConfigurationError, match=r"^--config resnet: this recipe has no data of its own"
    ) as caught:
        read_configuration(Path("resnet"), {})
    assert caught.value.fix == "name the data: handgrad train SOURCE --config resnet"

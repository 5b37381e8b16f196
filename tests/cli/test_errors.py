"""What a person does wrong at the command line: one message each, with the place and the values; no traceback."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from handgrad.cli import COMMANDS

from ..conftest import Command

WRONG: dict[str, tuple[int, str]] = {
    "train nowhere.csv --target kept": (1, "nowhere.csv: there is no such file"),
    "train nowhere": (1, "nowhere: there is no built-in data set and no folder of this name"),
    "train pets.txt": (1, "pets.txt: files that end in .txt are not read"),
    "train pets.csv": (1, "pets.csv: no target is named, and a table needs one"),
    "train pets.csv --target keep": (1, "pets.csv: there is no column 'keep'"),
    "train one.csv --target kept": (1, "one.csv: there is one class, 'yes', and two or more are needed"),
    "train empty.csv --target kept": (1, "empty.csv: the first line is empty"),
    "train header.csv --target kept": (1, "header.csv: the file has a header and no rows"),
    "train text.csv --target kept": (1, "text.csv, line 4: column 'height' holds 'tall', and a finite number is needed"),
    "train nan.csv --target kept": (1, "nan.csv, line 6: column 'age' holds 'nan', and a finite number is needed"),
    "train pets.csv --target kept --task regression": (1, "pets.csv, line 2: column 'kept' holds 'no', and a finite number is needed"),
    "train pets.csv --target kept --task clasification": (1, "data.task is 'clasification'"),
    "train prices.csv --target price --task classification": (1, "prices.csv, target price: the target of row 0 is 6.9, and classes are text or whole numbers"),
    "train torn": (1, "torn/t10k-images-idx3-ubyte: the file is cut short: 60 bytes of data expected, 55 found"),
    "train other": (1, "other/t10k-labels-idx1-ubyte: not an IDX file: it begins with 50 4e 47 2c, and must begin, in hexadecimal, with 00 00, a type (08, 09, 0b, 0c, 0d, 0e) and a rank from 01 to 20"),
    "train 'a file'": (1, "a file: there is no built-in data set and no folder of this name"),
    "predict runs/pets torn/t10k-images-idx3-ubyte": (1, "torn/t10k-images-idx3-ubyte: the file is cut short: 60 bytes of data expected, 55 found"),
    "predict runs/pets other/t10k-labels-idx1-ubyte": (1, "other/t10k-labels-idx1-ubyte: not an IDX file: it begins with 50 4e 47 2c, and must begin, in hexadecimal, with 00 00, a type (08, 09, 0b, 0c, 0d, 0e) and a rank from 01 to 20"),
    "train x.npy": (1, "x.npy: target is None, and must be the path of one file"),
    "train x.npy --target wide.npy": (1, "x.npy: x has 60 rows and t has shape (4, 7); rows must agree"),
    "train pets.npz --target kept": (1, "pets.npz: target is 'kept', and this source has its own target"),
    "train digits --target kept": (1, "digits: target is 'kept', and this source has its own target"),
    "train --target kept": (1, "digits: target is 'kept', and this source has its own target"),
    "train pets.csv --target kept --loss MeanSquaredError": (1, "pets.csv holds classes, and MeanSquaredError() is for values"),
    "train prices.csv --target price --loss SoftmaxCrossEntropy": (1, "prices.csv holds values, and SoftmaxCrossEntropy() is for classes"),
    "train three.csv --target kept --loss BinaryCrossEntropy": (1, "three.csv has 3 classes, and BinaryCrossEntropy() is for two"),
    "train prices.csv --target price --loss BinaryCrossEntropy": (1, "BinaryCrossEntropy(): the target of row 0 is 16.0, and must be from 0 to 1"),
    "train --activation rellu": (1, "network.activation: 'rellu' is unknown"),
    "train --optimiser Adm": (1, "training.optimiser.type: 'Adm' is unknown"),
    "train --schedule cosin": (1, "training.schedule: 'cosin' is unknown"),
    "train --loss SoftMax": (1, "network.loss: 'SoftMax' is unknown"),
    "train --normalisation bacth": (1, "network.normalisation is 'bacth'"),
    "train --dtype float16": (1, "network.dtype is 'float16'"),
    "train --engine refrence": (1, "training.engine: 'refrence' is unknown"),
    "train --standardise yes": (1, "data.standardise is 'yes'"),
    "train --batch-size 0": (1, "training.batch_size is 0"),
    "train --epochs 0": (1, "training.epochs is 0"),
    "train --epochs many": (2, "Invalid value for '--epochs': 'many' is not a valid integer."),
    "train --patience 0": (1, "training.patience is 0"),
    "train --seed -1": (1, "training.seed is -1"),
    "train --seed 9223372036854775808": (1, "training.seed is 9223372036854775808"),
    "train --dropout 1.5": (1, "network.dropout is 1.5"),
    "train --dropout nan": (1, "network.dropout is nan"),
    "train --hidden 12,x": (1, "--hidden: '12,x' is not a list of sizes"),
    "train --hidden 12,0": (1, "network.hidden[1] is 0"),
    "train --test 1": (1, "data.test is 1.0"),
    "train --validation -0.1": (1, "data.validation is -0.1"),
    "train --test 0.9 --validation 0.1": (1, "digits: no training row is left of 1797, as test takes 1617 and validation 180"),
    "train --validation 0 --patience 3": (1, "training.patience: there are no validation rows to watch"),
    "train --learning-rate 0": (1, "training.optimiser: Adam: learning_rate is 0.0"),
    "train --learning-rate inf": (1, "training.optimiser: Adam: learning_rate is inf"),
    "train --momentum 0.9": (1, "training.optimiser.momentum: Adam has no such setting"),
    "train --optimiser SGD --momentum 1": (1, "training.optimiser: SGD: momentum is 1.0"),
    "train --weight-decay -1": (1, "training.optimiser: Adam: weight_decay is -1.0"),
    "train --clip-norm 0": (1, "training.optimiser: Adam: clip_norm is 0.0"),
    "train --out 'a file'/run": (1, "a file/run: cannot be written: Not a directory"),
    "train --out 'a file'": (2, "Invalid value for '--out': Directory 'a file' is a file."),
    "train --config nowhere.toml": (1, "nowhere.toml: No such file or directory"),
    "predict runs/nowhere pets.csv": (1, "runs/nowhere/run.json: No such file or directory"),
    "predict runs/pets nowhere.csv": (1, "nowhere.csv: there is no such file"),
    "predict runs/pets narrow.csv": (1, "narrow.csv: there is no column 'age'"),
    "predict runs/pets text.csv": (1, "text.csv, line 4: column 'height' holds 'tall', and a finite number is needed"),
    "predict runs/pets nan.csv": (1, "nan.csv, line 6: column 'age' holds 'nan', and a finite number is needed"),
    "predict runs/pets empty.csv": (1, "empty.csv: the first line is empty"),
    "predict runs/pets header.csv": (1, "header.csv: there is no column 'height'"),
    "predict runs/pets wide.npy": (1, "the data has rows of (7,), the network takes (3,)"),
    "predict runs/pets pets.csv --out 'a file'/answers.csv": (1, "a file/answers.csv: cannot be written: a file is no folder"),
    "predict runs/pets": (2, "Missing argument 'SOURCE'."),
    "evaluate runs/nowhere": (1, "runs/nowhere/run.json: No such file or directory"),
    "evaluate runs/pets maybe.csv": (1, "maybe.csv: the class 'maybe' is not one the run knows"),
    "evaluate runs/pets narrow.csv": (1, "narrow.csv: there is no column 'age', which the run was trained on"),
    "evaluate runs/pets prices.csv": (1, "prices.csv: there is no column 'kept'"),
    "evaluate runs/pets x.npy": (1, "x.npy: target is None, and must be the path of one file"),
    "evaluate runs/pets wide.npy --target t.npy": (1, "wide.npy: x has 4 rows and t has shape (60,); rows must agree"),
    "evaluate runs/pets x.npy --target wide.npy": (1, "wide.npy: classification takes one target, and this one has shape (4, 7)"),
    "evaluate runs/pets one.csv": (1, "one.csv: there is one class, 'yes', and two or more are needed"),
    "evaluate runs/pets digits": (1, "the data has rows of (64,), the network takes (3,)"),
    "evaluate runs/prices pets.csv --target kept": (1, "pets.csv, line 2: column 'kept' holds 'no', and a finite number is needed"),
    "export runs/nowhere --torch w": (1, "runs/nowhere/run.json: No such file or directory"),
    "export runs/pets": (2, "Nothing to write: give --onnx FILE or --torch FILE."),
    "export runs/pets --torch w --prediction": (2, "--prediction and --without-standardisation are for --onnx FILE."),
    "export runs/pets --torch 'a file'/w": (1, "a file/w: cannot be written: a file is no folder"),
    "export runs/pets --torch runs": (2, "Invalid value for '--torch': File 'runs' is a directory."),
    "show runs/nowhere": (1, "runs/nowhere: there is no built-in data set and no folder of this name"),
    "show runs/pets --epochs 3": (1, "runs/pets is a run, which has its own settings"),
    "show runs/pets --config x.toml": (1, "runs/pets is a run, which has its own settings"),
    "write --out 'a file'/x": (1, "a file/x/data.npz: cannot be written: Not a directory"),
    "trian": (2, "No such command 'trian'. Did you mean 'train'?"),
    "train --epoch 3": (2, "No such option '--epoch'. Did you mean '--epochs'?"),
    "predit": (2, "No such command 'predit'. Did you mean 'predict'?"),
    "quite-another": (2, f"No such command 'quite-another'. Choose from {', '.join(sorted(COMMANDS))}"),
    "train pets.csv more.csv": (2, "Got unexpected extra argument (more.csv)"),}  # fmt: skip
"""A command, its exit code, and what its error begins with: its whole first line."""


@pytest.mark.parametrize("arguments", WRONG)
def test_a_mistake_is_one_message(at: Command, runs: Path, arguments: str) -> None:
    """Exit code 1 for what handgrad finds, 2 for what the command line does; nothing on standard output."""
    code, problem = WRONG[arguments]
    done = at(*shlex.split(arguments), code=code)
    lines = done.stderr.splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("Error: "))
    assert lines[first] == f"Error: {problem}"
    assert done.stdout == ""
    assert len(lines) - first <= 3  # the problem, what was given, what to do
    assert all(line.startswith(("  given  ", "  fix    ")) for line in lines[first + 1 :])


def test_no_mistake_leaves_a_folder_behind(at: Command, runs: Path) -> None:
    """A training that ends in an error makes no run folder, not even an empty one."""
    before = sorted(runs.rglob("*"))
    at("train", "pets.csv", "--target", "kept", "--optimiser", "SGD", "--learning-rate", "1e30", code=1)
    at("train", "pets.csv", "--target", "kept", "--out", "new/run", "--learning-rate", "-1", code=1)
    assert sorted(runs.rglob("*")) == before


def test_a_loss_that_is_not_finite_names_the_line_and_the_learning_rate(at: Command, shop: Path) -> None:
    """One message, without NumPy's warnings before it."""
    done = at("train", "moons", "--optimiser", "SGD", "--learning-rate", "1e30", code=1)
    head, problem, given, fix = done.stderr.splitlines()
    assert head == "moons: 700 training rows · network 2 → 256 → 2 · 1,282 parameters"
    assert problem.startswith("Error: step ")
    assert " line `" in problem
    assert given.startswith("  given  |")
    assert fix.startswith("  fix    likely cause: the learning rate: W1 has grown from ")
    assert fix.endswith("; try a learning rate of 1e+29 instead of 1e+30, or clip_norm=1.0")


def test_options_may_come_in_any_order(at: Command, shop: Path) -> None:
    """--learning-rate before --optimiser is not forgotten."""
    for order in (
        ["--learning-rate", "-2", "--optimiser", "SGD"],
        ["--optimiser", "SGD", "--learning-rate", "-2"],
    ):
        done = at("train", *order, code=1)
        assert done.stderr.startswith("Error: training.optimiser: SGD: learning_rate is -2.0\n")


def test_a_mistake_in_a_configuration_names_file_line_and_setting(command: Command, tmp_path: Path) -> None:
    """Before any data is read."""
    (tmp_path / "net.toml").write_text('[network]\nhidden = [3]\nactivation = "rellu"\n')
    done = command("train", "no-such-data.csv", "--config", "net.toml", code=1)
    assert done.stderr == (
        "Error: net.toml, line 3: network.activation: 'rellu' is unknown\n  fix    did you mean 'relu'?\n"
    )


def test_what_the_command_line_gave_is_not_blamed_on_the_file(command: Command, tmp_path: Path) -> None:
    """An option goes over the file, and so does its mistake."""
    (tmp_path / "net.toml").write_text('[network]\nactivation = "relu"\n')
    done = command("train", "--config", "net.toml", "--activation", "rellu", code=1)
    assert done.stderr.startswith("Error: network.activation: 'rellu' is unknown\n")


LAYERS = '[network]\nlayers = [{{type = "Linear", inputs = {}, outputs = 4}}, {{type = "Linear", inputs = {}, outputs = {}}}]\n'
"""Two layers with their sizes open."""


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            (63, 4, 10),
            "layer 2, Linear(63, 4): axis I is 64 in x(n, 64)[1] but 63 in W(63, 4)[0]\n"
            "  given  h1(n, 64) comes from the data\n  fix    make the two sizes the same\n",
        ),
        (
            (64, 5, 10),
            "layer 3, Linear(5, 10): axis I is 4 in x(n, 4)[1] but 5 in W(5, 10)[0]\n"
            "  given  z1(n, 4) comes from layer 2, Linear(64, 4)\n  fix    make the two sizes the same\n",
        ),
        (
            (64, 4, 9),
            "network.layers: Linear(4, 9) gives 9 outputs, and digits with SoftmaxCrossEntropy() needs 10\n",
        ),
    ],
)
def test_layers_that_do_not_fit_are_named(
    command: Command, tmp_path: Path, sizes: tuple[int, ...], message: str
) -> None:
    """Neither to the data, nor to each other, nor to the classes."""
    (tmp_path / "net.toml").write_text(LAYERS.format(*sizes))
    assert command("train", "--config", "net.toml", code=1).stderr == f"Error: {message}"

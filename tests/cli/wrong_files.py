"""Files that are wrong in one way each, and the commands that meet them: what a person may give by mistake."""

from __future__ import annotations

import json
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FUNCTIONS = "import numpy as np\ninputs = {'x': np.array([1.0, 2.0])}\n"
RULE = "from handgrad.rules import rule\n@rule('... -> ...')\ndef square(x):\n    y = x * x\n    return y\n"

TEXTS: dict[str, str] = {
    # settings
    "broken.toml": "[data",
    "deep.toml": ".".join("a" * 40) + " = 1\n",
    "large.toml": f"# {'x' * 2**20}\n",
    "slip.toml": "[training]\nepoch = 3\n",
    "table.toml": "[trainin]\nepochs = 3\n",
    "type.toml": '[training]\nepochs = "3"\n',
    "share.toml": '[data]\ntest = "half"\n',
    "alone.toml": '[training]\nengine = "compiled"\n',
    "scalar.toml": "training = 3\n",
    "twice.toml": '[network]\nhidden = [3]\nlayers = [{type = "Linear", inputs = 64, outputs = 10}]\n',
    "number.toml": "[network]\nlayers = [3]\n",
    "untyped.toml": "[network]\nlayers = [{inputs = 64}]\n",
    "kind.toml": '[network]\nlayers = [{type = "Liner"}]\n',
    "sizes.toml": '[network]\nlayers = [{type = "Linear", outputs = 64}]\n',
    "setting.toml": '[network]\nlayers = [{type = "Linear", input = 64, outputs = 10}]\n',
    "zero.toml": '[network]\nlayers = [{type = "Linear", inputs = 64, outputs = 0}]\n',
    "vast.toml": '[network]\nlayers = [{type = "Linear", inputs = 64, outputs = 9007199254740993}]\n',
    "word.toml": '[network]\nlayers = [{type = "Linear", inputs = "64", outputs = 10}]\n',
    "start.toml": '[network]\nlayers = [{type = "Linear", inputs = 64, outputs = 10, initialiser = "he"}]\n',
    "rate.toml": '[network]\nlayers = [{type = "Dropout", rate = 2.0}]\n',
    "negative.toml": '[network]\nlayers = [{type = "LeakyReLU", slope = nan}]\n',
    "residual.toml": '[network]\nlayers = [{type = "Residual", layers = 3}]\n',
    "inner.toml": '[network]\nlayers = [{type = "Residual", layers = [{type = "Tanhh"}]}]\n',
    "unequal.toml": '[network]\nlayers = [{type = "Residual", layers = [{type = "Linear", inputs = 64, outputs = 10}]}]\n',
    "late.toml": '[network]\nlayers = ["ReLU", {type = "Standardise"}]\n',
    "fewer.toml": '[network]\nlayers = [{type = "Linear", inputs = 64, outputs = 9}]\n',
    "momentum.toml": '[training]\noptimiser = {type = "SGD", nesterov = true}\n',
    "beta.toml": '[training]\noptimiser = {type = "Adam", beta1 = 1.0}\n',
    "epsilon.toml": '[training]\noptimiser = {type = "RMSProp", epsilon = 0.0}\n',
    "steps.toml": '[training]\nschedule = {type = "StepDecay", every = 0}\n',
    "cosine.toml": '[training]\nschedule = {type = "Cosine", final = -1.0}\n',
    "cycle.toml": '[training]\nschedule = {type = "OneCycle", rising = 0.0}\n',
    "smoothing.toml": '[network]\nloss = {type = "SoftmaxCrossEntropy", smoothing = 1.0}\n',
    "penalty.toml": '[network]\nloss = {type = "SoftmaxCrossEntropy", l2 = -1.0}\n',
    "weightless.toml": '[data]\nsource = "xor"\n[network]\nlayers = ["Tanh"]\nloss = {type = "SoftmaxCrossEntropy", l2 = 0.1}\n',
    "half.toml": '[network]\nloss = {type = "HalfSquaredError", l2 = 0.1}\n',
    "delta.toml": '[network]\nloss = {type = "Huber", delta = 0.0}\n',
    "positive.toml": '[network]\nloss = {type = "BinaryCrossEntropy", positive_weight = 0.0}\n',
    "weights.toml": '[network]\nloss = {type = "SoftmaxCrossEntropy", class_weight = [1.0, -1.0]}\n',
    "words.toml": '[data]\nsource = "words.npz"\n[network]\nlayers = [{type = "Embedding", entries = 5, features = 2}, {type = "Linear", inputs = 2, outputs = 2}]\n',
    "lookup.toml": '[network]\nlayers = [{type = "Embedding", entries = 5, features = 2}]\n',
    "second.toml": '[network]\nlayers = [{type = "Linear", inputs = 64, outputs = 3}, {type = "Embedding", entries = 5, features = 2}]\n',
    # tables
    "again.csv": "width,width,kept\n1,2,no\n",
    "names.csv": "name,kept\nrex,no\ntom,yes\n",
    "unnamed.csv": "width,,kept\n0,2,no\n",
    "bars.csv": "width|kept\n1|no\n2|yes\n",
    "dollars.csv": 'width,price\n1,"$1,000"\n2,"$2,000"\n',
    "ids.csv": "width,name\n" + "".join(f"{k},r{k}\n" for k in range(30)),
    "ragged.csv": "width,kept\n1,no\n2,no,3\n",
    "long.csv": 'width,kept\n"1,no\n' + "2,yes\n" * 30_000,
    # texts
    "short.txt": "ab\nc ",
    "empty.txt": "",
    "same.txt": "a" * 99,
    # files with functions
    "syntax.py": "def f(:\n",
    "bytes.py": "x = 1\0",
    "long.py": f"{FUNCTIONS}sizes = {' + '.join(['1'] * 900)}\n",
    "longer.py": f"{FUNCTIONS}sizes = {' + '.join(['1'] * 9000)}\n",
    "missing.py": "\nimport nowhere_at_all\n",
    "exits.py": "import sys\nsys.exit(3)\n",
    "nothing.py": "x = 1\n",
    "one_sided.py": "def forward(x):\n    return x\n",
    "number.py": "forward = 3\ndef backward(g, x):\n    return g\n",
    "no_inputs.py": "def forward(x):\n    return x\ndef backward(g, x):\n    return g\n",
    "swish.py": "def swish(x):\n    return x\n",
    "ends.py": FUNCTIONS + "import sys\ndef forward(x):\n    sys.exit()\ndef backward(g, x):\n    return g\n",
    "undefined.py": FUNCTIONS + "def forward(x):\n    return x * y\ndef backward(g, x):\n    return g\n",
    "raises.py": FUNCTIONS + "def forward(x):\n    return x\ndef backward(g, x):\n    return g @ g @ g\n",
    "takes.py": FUNCTIONS + "def forward(x, W):\n    return x\ndef backward(g, x, W):\n    return g\n",
    "text.py": FUNCTIONS + "def forward(x):\n    return 'x'\ndef backward(g, x):\n    return g\n",
    "fickle.py": FUNCTIONS + "calls = []\ndef forward(x):\n    calls.append(1)\n    return x * len(calls)\ndef backward(g, x):\n    return g\n",
    "infinite.py": FUNCTIONS + "def forward(x):\n    return x / (x - x)\ndef backward(g, x):\n    return g\n",
    "empty.py": "inputs = {}\ndef forward():\n    return 1.0\ndef backward(g):\n    return ()\n",
    "whole.py": "import numpy as np\ninputs = {'x': np.array([1, 2])}\ndef forward(x):\n    return x\ndef backward(g, x):\n    return g\n",
    "nan.py": "import numpy as np\ninputs = {'x': np.array([1.0, np.nan])}\ndef forward(x):\n    return x\ndef backward(g, x):\n    return g\n",
    "word.py": "inputs = {'x': 'word'}\ndef forward(x):\n    return 1.0\ndef backward(g, x):\n    return g\n",
    "uneven.py": "inputs = {'x': [[1.0], [1.0, 2.0]]}\ndef forward(x):\n    return 1.0\ndef backward(g, x):\n    return g\n",
    "list.py": "inputs = [1.0]\ndef forward(x):\n    return x\ndef backward(g, x):\n    return g\n",
    "named.py": "inputs = {1: 2.0}\ndef forward(x):\n    return x\ndef backward(g, x):\n    return g\n",
    "draws.py": "def inputs(rng):\n    return {'x': rng.normal(size=nowhere)}\ndef forward(x):\n    return x\ndef backward(g, x):\n    return g\n",
    "vast.py": "import numpy as np\ninputs = {'x': np.zeros(10**9)}\ndef forward(x):\n    return x\ndef backward(g, x):\n    return g\n",
    "two.py": FUNCTIONS + "def forward(x):\n    return x\ndef backward(g, x):\n    return g, g\n",
    "none.py": FUNCTIONS + "def forward(x):\n    return x\ndef backward(g, x):\n    return None\n",
    "other.py": FUNCTIONS + "def forward(x):\n    return x\ndef backward(g, x):\n    return {'W': g}\n",
    "nobody.py": FUNCTIONS + "def forward(x):\n    return x\ndef backward(g, x):\n    return {}\n",
    "said.py": FUNCTIONS + "def forward(x):\n    return x\ndef backward(g, x):\n    return {'x': 'g'}\n",
    "jagged.py": FUNCTIONS + "def forward(x):\n    return x\ndef backward(g, x):\n    return {'x': [[1.0], [1.0, 2.0]]}\n",
    "network.py": "from handgrad import Linear, Network\nnetwork = Network(Linear(2, 3))\n",
    "rules.py": RULE + "@square.backward\ndef square_backward(dy, x):\n    dx = 2 * x * dy\n    return dx\n@rule('... -> ...')\ndef cube(x):\n    y = x * x * x\n    return y\n@cube.backward\ndef cube_backward(dy, x):\n    dx = 3 * x * x * dy\n    return dx\n",
    "no_backward.py": RULE,
    "wrong_name.py": RULE + "@square.backward\ndef square_backward(dy, z):\n    dx = 2 * z * dy\n    return dx\n",
    "wrong_return.py": RULE + "@square.backward\ndef square_backward(dy, x):\n    dz = 2 * x * dy\n    return dz\n",
    "known_name.py": RULE + "@square.backward\ndef square_backward(dy, x):\n    y = 2 * x * dy\n    dx = y\n    return dx\n",
    "wrong_option.py": RULE + "@square.backward\ndef square_backward(dy, x, *, rate=1.0):\n    dx = 2 * x * dy\n    return dx\n",
    "loop.py": RULE.replace("    y = x * x\n", "    for y in x:\n        pass\n"),
    "while.py": RULE.replace("    y = x * x\n", "    while x:\n        pass\n"),
    "in_loop.py": RULE.replace("y = x * x\n", "y = x * x\n    for t in range(3):\n        y = x\n"),
    "fills.py": RULE.replace("y = x * x\n", "y = x * x\n    for t in range(3):\n        x[t] = y[t]\n"),
    "fills_view.py": RULE.replace("y = x * x\n", "y = x.T\n    for t in range(3):\n        y[t] = 2\n"),
    "scales.py": RULE.replace("y = x * x\n", "y = x * x\n    for t in range(3):\n        y[t] *= 2\n"),
    "branch.py": RULE.replace("x * x", "x if x else 1"),
    "builtin.py": RULE.replace("x * x", "max(x)"),
    "expression.py": RULE.replace("return y", "return y * y"),
    "no_return.py": RULE.replace("    return y\n", ""),
    "default.py": RULE.replace("square(x)", "square(x=1)"),
    "tuple.py": RULE.replace("return y", "return y, x"),
    "signature.py": RULE.replace("... -> ...", "... ... -> ..."),
    "arrow.py": RULE.replace("... -> ...", "..."),
    "axis.py": RULE.replace("... -> ...", "n -> m"),
    "letter.py": RULE.replace("... -> ...", "1 -> n"),
    "arguments.py": RULE.replace("... -> ...", "..., ... -> ..."),
    "in_place.py": RULE.replace("y = x * x", "y = x\n    y += x"),
}  # fmt: skip
"""Text files by name."""


def _idx(path: Path, *images: int, magic: bytes = b"\0\0\x08", data: int | None = None) -> None:
    content = magic + bytes([len(images)]) + struct.pack(f">{len(images)}I", *images)
    path.write_bytes(content + bytes(int(np.prod(images)) if data is None else data))


def _mnist(
    folder: Path, train: tuple[int, ...] = (4, 2, 2), test: tuple[int, ...] = (2, 2, 2), labels: int = 4
) -> None:
    folder.mkdir()
    _idx(folder / "train-images-idx3-ubyte", *train)
    _idx(folder / "train-labels-idx1-ubyte", labels)
    _idx(folder / "t10k-images-idx3-ubyte", *test)
    _idx(folder / "t10k-labels-idx1-ubyte", 2)


def _without_labels(folder: Path) -> None:
    _mnist(folder)
    (folder / "t10k-labels-idx1-ubyte").unlink()


def _flat_images(folder: Path) -> None:
    _mnist(folder)
    _idx(folder / "t10k-images-idx3-ubyte", 2)


def _cut_sizes(folder: Path) -> None:
    _mnist(folder)
    (folder / "t10k-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03\0\0")


def _packed(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as file:
        np.save(path.with_suffix(".npy"), np.ones((3, 2)))
        file.write(path.with_suffix(".npy"), "x.npy")


def _bomb(path: Path) -> None:
    np.savez_compressed(path, x=np.zeros((40_000, 1000)), t=np.zeros(40_000))


def _save(path: Path, **arrays: object) -> None:
    np.savez(path, **{name: np.asarray(array) for name, array in arrays.items()})


def _sparse(**other: object) -> dict[str, object]:
    """Return what scipy's `save_npz` writes of two rows, with other arrays in place of some."""
    return {
        "format": b"csr",
        "data": [1.0, 2.0],
        "indices": [0, 1],
        "indptr": [0, 1, 2],
        "shape": [2, 3],
    } | other


def _unfinished(folder: Path) -> None:
    shutil.copytree(Path(__file__).parents[1] / "fuzz" / "corpus" / "run", folder)
    (folder / "run.json").unlink()


def _run(folder: Path, **changes: object) -> Path:
    """Copy the run of all rows, and change what its run.json says."""
    shutil.copytree(folder.parent / "all", folder)
    head = json.loads((folder / "run.json").read_text()) | changes
    (folder / "run.json").write_text(json.dumps(head))
    return folder


def _own_layer(folder: Path) -> None:
    network = {"layers": [{"type": "Mine"}], "loss": None, "row": [3], "dtype": "float32", "seed": 0}
    _run(folder, network=network, own={"Mine": "mine.py"})


def _linked(folder: Path) -> None:
    path = _run(folder) / "weights.safetensors"
    path.unlink()
    path.symlink_to(folder.parent / "all" / path.name)


def _large(folder: Path) -> None:
    with (_run(folder) / "run.json").open("wb") as file:
        file.truncate(2**27)


ROWS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
OTHERS: dict[str, Callable[[Path], object]] = {
    "latin.csv": lambda path: path.write_bytes("größe,kept\n1,no\n".encode("latin-1")),
    "latin.txt": lambda path: path.write_bytes("café".encode("latin-1")),
    "folder.csv": lambda path: path.mkdir(),
    "text.npy": lambda path: path.write_bytes(b"\x93NUMPY no more"),
    "no.npy": lambda path: path.write_bytes(b"1 2 3"),
    "short.npy": lambda path: [np.save(path, np.ones((4, 3))), path.write_bytes(path.read_bytes()[:-9])],
    "complex.npy": lambda path: np.save(path, np.ones((4, 3), complex)),
    "objects.npy": lambda path: np.save(path, np.array([[{}]]), allow_pickle=True),
    "none.npy": lambda path: np.save(path, np.ones((0, 3))),
    "scalar.npy": lambda path: np.save(path, np.ones(())),
    "nan.npy": lambda path: np.save(path, np.array([[1.0, 2.0, np.nan]])),
    "nothing.npz": lambda path: _save(path, a=ROWS),
    "nan.npz": lambda path: _save(path, x=[[1.0, np.inf]], t=[1.0]),
    "coo.npz": lambda path: _save(path, format=b"coo", row=[0], col=[1], data=[1.0], shape=[2, 3]),
    "square.npz": lambda path: _save(path, **_sparse(data=np.eye(2))),
    "endless.npz": lambda path: _save(path, **_sparse(shape=[2, 2**63 - 1])),
    "layouts.npz": lambda path: _save(path, **_sparse(format=["csr", "csc"])),
    "flat.npz": lambda path: _save(path, x=[1.0, 2.0], t=["a", "b"]),
    "fewer.npz": lambda path: _save(path, x=ROWS, t=["a", "b"]),
    "texts.npz": lambda path: _save(path, x=ROWS, t=["a", "b", "c"]),
    "letters.npz": lambda path: _save(path, x=[["a"], ["b"]], t=["a", "b"]),
    "deep.npz": lambda path: _save(path, x=np.ones((9, 2, 2)), t=["a", "b", "c"] * 3),
    "words.npz": lambda path: _save(path, x=[[1, 2, 5], [0, 1, 2]] * 9, t=["a", "b"] * 9),
    "no.npz": lambda path: path.write_bytes(b"PK no more"),
    "packed.npz": _packed,
    "bomb.npz": _bomb,
    "images": lambda path: _mnist(path, test=(2, 3, 3)),
    "labels": lambda path: _mnist(path, labels=3),
    "unlabelled": _without_labels,
    "flat": _flat_images,
    "cut": _cut_sizes,
    "no.parquet": lambda path: path.write_bytes(b"PAR1 no more"),
    "none.parquet": lambda path: pq.write_table(
        pa.table({"a": pa.array([], "f8"), "t": pa.array([], "f8")}), path
    ),
    "lists.parquet": lambda path: pq.write_table(pa.table({"a": [[0]], "t": [1.0]}), path),
    "gap.parquet": lambda path: pq.write_table(
        pa.table({"a": [1.0, 2.0], "t": pa.nulls(2, pa.float64())}), path
    ),
    "mine": lambda folder: [folder.mkdir(), (folder / "history.csv").write_text("mine")],
    "theirs": lambda folder: [folder.mkdir(), (folder / "train.py").write_text("mine = 1\n")],
    "commas.csv": lambda path: path.write_text("size;t\n1,5;2\n1.500;3\n"),
    "runs/replaced": lambda folder: [
        _run(folder),
        (folder / "new").mkdir(),
        (folder / "new" / "notes.txt").touch(),
    ],
    "runs/estimator": lambda folder: [_run(folder), (folder / "estimator.json").write_text("{}")],
    "runs/unfinished": _unfinished,
    "runs/own": _own_layer,
    "runs/linked": _linked,
    "runs/large": _large,
    "runs/snapshots": lambda folder: (_run(folder) / "snapshots.jsonl").write_text("{}\n"),
    "runs/checkpoint": lambda folder: [
        _unfinished(folder),
        (folder / "checkpoint.safetensors").write_bytes(b"none"),
    ],
}
"""What is no text, or no file."""


def write_wrong(folder: Path) -> None:
    """Write them all into a folder, in which the run `runs/all` is."""
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name, write in OTHERS.items():
        write(folder / name)

"""Estimators in run folders, as `handgrad train` writes them, with two files of their own.

estimator.json       the parameters, the classes, and the fitted attributes
descent.safetensors  the state of the descent: the optimiser's slots and the random state, to resume `partial_fit`

So everything that opens a run opens these: ``handgrad show``, ``handgrad predict``. Nothing in them is ever run.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np

from handgrad.arrays import Array
from handgrad.errors import HandgradError, RunError
from handgrad.files import Tensors, check_arrays, parse_versioned, read_file, tensor_bytes, write_file
from handgrad.layers import SCHEDULES, Schedule
from handgrad.runs import ESTIMATOR, Run, load_run, new_run, write_run
from handgrad.sklearn.classifier import LabelKind
from handgrad.sklearn.networks import FIND, build_optimiser
from handgrad.sklearn.solvers import DescentState
from handgrad.specs import from_table, to_table
from handgrad.training import EpochRecord, History
from handgrad.training.metrics import metric_name

FORMAT = 1
MAX_BYTES = 64 * 2**20  # of estimator.json: room for a million classes

DESCENT = "descent.safetensors"
DESCENT_FORMAT = 1
GENERATOR = "random/key"
"""The state of the generator that shuffles (MT19937), which whole numbers of 64 bits hold."""

SLOT = "slot/"

E = TypeVar("E")
Count = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]


class _FittedAttributes(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Numbers, or lists of them; not every fit sets all of them."""

    n_iter_: Count
    t_: Count
    loss_: float
    best_loss_: float | msgspec.UnsetType | None = msgspec.UNSET
    best_validation_score_: float | msgspec.UnsetType | None = msgspec.UNSET
    loss_curve_: list[float] | msgspec.UnsetType = msgspec.UNSET
    validation_scores_: list[float] | msgspec.UnsetType | None = msgspec.UNSET


class _EstimatorFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The contents of estimator.json."""

    format: int
    type: str
    parameters: dict[str, Any]
    fitted: _FittedAttributes
    kind: LabelKind | None
    classes: list[str | int | float | bool]
    class_type: str


class _GeneratorState(msgspec.Struct, forbid_unknown_fields=True):
    """The state of MT19937 besides its key."""

    position: int
    has_normal: int
    normal: float


class _DescentHeader(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The metadata of descent.safetensors."""

    format: int
    rate: Annotated[float, msgspec.Meta(gt=0, le=1e308)]
    seed: Count
    step: Count
    epoch: Count
    waited: Count
    generator: _GeneratorState | None


def save(estimator: Any, folder: Path, *, overwrite: bool) -> None:
    """Write a fitted estimator into a run folder; see `MLPClassifier.save`."""
    kind: LabelKind | None = getattr(estimator, "_kind", None)
    classes = estimator.classes_ if kind else np.array([])
    if kind and len(classes) < 2:
        raise RunError(
            f"{folder}: a classifier of one class has nothing to save", fix="fit it to two or more"
        )
    if not hasattr(estimator, "loss_"):
        raise RunError(f"{folder}: there is nothing to save before a first epoch", fix="let fit run longer")
    several, names = kind == "multilabel-indicator", tuple(map(str, classes))
    run = Run(
        estimator.network_,
        source=f"handgrad.sklearn.{type(estimator).__name__}",
        task="regression" if kind is None or several else "classification",
        target=[f"label_{name}" for name in names] if several else None,
        classes=() if several else names,
        feature_names=tuple(map(str, getattr(estimator, "feature_names_in_", ()))),
    )
    fitted = _FittedAttributes.__struct_fields__
    table = {
        "format": FORMAT,
        "type": type(estimator).__name__,
        "parameters": {name: _plain(value, name) for name, value in estimator.get_params().items()},
        "fitted": {name: getattr(estimator, name) for name in fitted if hasattr(estimator, name)},
        "kind": kind,
        "classes": classes.tolist(),
        "class_type": classes.dtype.str if kind else "",
    }
    with new_run(folder, overwrite=overwrite) as new:
        write_run(
            new, run, _history(estimator), f"# fitted by {run.source}; its parameters are in {ESTIMATOR}\n"
        )
        _save_descent(estimator, new)
        write_file(new / ESTIMATOR, json.dumps(table, indent=2, default=float) + "\n")


def _history(estimator: Any) -> History:
    """Return the training as a run folder has it."""
    losses = getattr(estimator, "loss_curve_", None) or [estimator.loss_]
    scores = getattr(estimator, "validation_scores_", None) or [None] * len(losses)
    rate = float(
        estimator.learning_rate_ if estimator.learning_rate == FIND else estimator.learning_rate_init
    )
    records = [
        EpochRecord(number, loss, None, score, rate, 0.0)
        for number, (loss, score) in enumerate(zip(losses, scores, strict=False), 1)
    ]
    return History(metric_name(estimator.network_.loss), records)


def _plain(value: Any, name: str) -> Any:
    """Return a parameter as JSON has it."""
    if isinstance(value, Schedule):
        return to_table(value)
    if isinstance(value, np.random.RandomState) or name == "after_epoch":
        return None  # a generator's state and a function are no settings
    if name == "class_weight" and isinstance(value, dict):
        return [[_plain(key, ""), float(weight)] for key, weight in value.items()]
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def load(kind: type[E], folder: Path) -> E:
    """Open what `save` wrote; see `MLPClassifier.load`."""
    path = folder / ESTIMATOR
    place = str(path)
    table = parse_versioned(read_file(path, MAX_BYTES), _EstimatorFile, place, FORMAT)
    if table.type != kind.__name__:
        raise RunError(f"{place}: holds a {table.type}", fix=f"open it with {table.type}.load")
    run = load_run(folder)
    try:
        estimator: Any = kind(**_parameters(table.parameters, place))
        estimator._validate_params()
        _set_fitted(estimator, table, run)
        _load_descent(estimator, folder)
    except RunError:
        raise
    except (TypeError, ValueError, HandgradError) as error:
        raise RunError(f"{place}: damaged, or not handgrad's: {error}") from None
    return estimator


def _parameters(plain: dict[str, Any], place: str) -> dict[str, Any]:
    parameters = dict(plain)
    if isinstance(parameters.get("learning_rate"), dict):
        parameters["learning_rate"] = from_table(
            parameters["learning_rate"], f"{place}: learning_rate", SCHEDULES
        )
    if isinstance(parameters.get("class_weight"), list):
        parameters["class_weight"] = dict(parameters["class_weight"])
    if isinstance(parameters.get("hidden_layer_sizes"), list):
        parameters["hidden_layer_sizes"] = tuple(parameters["hidden_layer_sizes"])
    return parameters


def _set_fitted(estimator: Any, table: _EstimatorFile, run: Run) -> None:
    """Set the fitted attributes, and check that all of it fits together."""
    network = run.network
    if len(network.row) != 1 or len(network.output_shape) != 2:
        raise ValueError("the network takes no rows of features, or has no outputs for each")
    outputs = int(network.output_shape[1])
    if table.kind is not None:
        estimator._kind = table.kind
        estimator.classes_ = np.array(table.classes, _class_type(table.class_type))
        if outputs != (1 if table.kind == "binary" else len(table.classes)):
            raise ValueError(f"{len(table.classes)} classes, and the network has {outputs} outputs")
    for name, value in msgspec.structs.asdict(table.fitted).items():
        if value is not msgspec.UNSET:
            setattr(estimator, name, value)
    estimator.network_, estimator.n_features_in_ = network, network.row[0]
    if run.feature_names:
        estimator.feature_names_in_ = np.array(run.feature_names, object)


def _class_type(name: str) -> Any:
    """Return the type of classes by its name; texts get their own length, not the one in the name."""
    if re.fullmatch(r"[<>|=](U\d+|O)", name):
        return object if name.endswith("O") else str
    if not re.fullmatch(r"[<>|=][biuf][1248]", name):
        raise ValueError(f"classes of type {name!r}")
    return np.dtype(name)


def _save_descent(estimator: Any, folder: Path) -> None:
    """Write the state of the last descent; nothing where the estimator's parameters would not resume from it."""
    found: DescentState | None = estimator._descent_state
    if found is None or {name: array.shape for name, array in found.slots.items()} != _slot_shapes(estimator):
        return
    arrays = {SLOT + name: array for name, array in found.slots.items()}
    state, generator = estimator._random_state.get_state(legacy=False), None
    if state["bit_generator"] == "MT19937":  # RandomState may be given another, which begins anew
        arrays[GENERATOR] = state["state"]["key"].astype(np.int64)
        generator = _GeneratorState(state["state"]["pos"], state["has_gauss"], state["gauss"])
    header = _DescentHeader(
        format=DESCENT_FORMAT, rate=found.rate, seed=found.seed, step=found.step, epoch=found.epoch,
        waited=found.waited, generator=generator,
    )  # fmt: skip
    write_file(folder / DESCENT, tensor_bytes(arrays, header))


def _load_descent(estimator: Any, folder: Path) -> None:
    """Set the state of the last descent of an estimator, which has its network already."""
    estimator._descent_state, path = None, folder / DESCENT
    if not path.exists():
        return
    with Tensors.open(path) as tensors:
        header = tensors.header(_DescentHeader, DESCENT_FORMAT)
        shapes, dtype = _slot_shapes(estimator), estimator.network_.dtype
        wanted = {SLOT + name: (shape, dtype) for name, shape in shapes.items()}
        if header.generator:
            wanted[GENERATOR] = ((624,), "int64")
        check_arrays(str(path), tensors.shapes(), wanted)
        slots = {name: tensors.read(SLOT + name) for name in shapes}
        if header.generator:
            estimator._random_state = _generator(header.generator, tensors.read(GENERATOR), str(path))
    counts = header.seed, header.step, header.epoch, header.waited
    estimator._descent_state = DescentState(header.rate, *counts, slots)


def _slot_shapes(estimator: Any) -> dict[str, tuple[int, ...]]:
    return dict(estimator.network_.program(build_optimiser(estimator)).slots)


def _generator(state: _GeneratorState, key: Array, place: str) -> np.random.RandomState:
    if not (key.min() >= 0 and key.max() < 2**32 and 0 <= state.position <= 624):
        raise RunError(f"{place}: damaged, or not handgrad's: its random state is none of MT19937")
    generator = np.random.RandomState()
    generator.set_state(
        ("MT19937", key.astype(np.uint32), state.position, int(bool(state.has_normal)), state.normal)
    )
    return generator

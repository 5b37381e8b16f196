"""The compiled engine gives the reference engine's numbers: every rule, loss and optimiser, with threads or without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

import numpy as np
import pytest

from handgrad import (
    GELU,
    GRU,
    LSTM,
    RNN,
    Adam,
    BatchNorm,
    BinaryCrossEntropy,
    Concat,
    Cosine,
    Dropout,
    Embedding,
    Flatten,
    GlobalAvgPool2d,
    GroupNorm,
    HalfSquaredError,
    Huber,
    Last,
    Layer,
    LayerNorm,
    Linear,
    Loss,
    MeanSquaredError,
    Network,
    OneCycle,
    Poisson,
    Positions,
    ReLU,
    Reshape,
    Residual,
    RMSNorm,
    SelfAttention,
    Sequential,
    Sigmoid,
    Softmax,
    SoftmaxCrossEntropy,
    Standardise,
    StandardiseTargets,
    StepDecay,
    SwiGLU,
    Tanh,
    layers,
    train,
)
from handgrad.engines import ReferenceEngine
from handgrad.engines.compiled import CompiledEngine
from handgrad.explaining.execution import execute_rule
from handgrad.layers import LAYERS, Optimiser, Schedule
from handgrad.program.lowering import lower
from handgrad.rules import embedding

from ..rules.table import TABLE, UPDATES, Row
from .agreement import BATCH_SIZES, ROWS, Case, Training, check_agreement, check_same, threads
from .images import IMAGES

DTYPES = ("float32", "float64")
FEATURES, HIDDEN, OUTPUTS, TIME, ENTRIES = 5, 19, 3, 4, 11
"""All different; HIDDEN is no multiple of how many numbers are computed side by side."""

RNG = np.random.default_rng(0)
X = {2: RNG.normal(size=(ROWS, FEATURES)), 3: RNG.normal(size=(ROWS, TIME, FEATURES))}
T = {2: RNG.normal(size=(ROWS, OUTPUTS)), 3: RNG.normal(size=(ROWS, TIME, OUTPUTS))}
LABELS = {rank: (t > 0) * 1.0 for rank, t in T.items()}
SHARES = {rank: np.exp(t) / np.exp(t).sum(axis=-1, keepdims=True) for rank, t in T.items()}
CLASSES = {rank: t.argmax(axis=-1) for rank, t in T.items()}
IGNORED = {rank: np.where(RNG.random(t.shape) < 0.3, -1, t) for rank, t in CLASSES.items()}
W = {2: RNG.uniform(0, 2, ROWS), 3: RNG.uniform(0, 2, (ROWS, TIME))}
INDICES = {1: RNG.integers(0, ENTRIES, ROWS), 2: RNG.integers(0, ENTRIES, (ROWS, TIME))}


def settings_of(kind: type[Layer]) -> list[dict[str, Any]]:
    """Return the settings that the table has of a layer's rule; its defaults where it has none."""
    rule = getattr(kind, "rule", None)
    return [dict(options) for row in TABLE if row.rule is rule for options in row.options] or [{}]


def needs_nothing(kind: type[Any]) -> bool:
    """Whether a kind is made without sizes."""
    return all(field.default is not MISSING for field in fields(kind))


NOT_BETWEEN_ROWS_OF_FEATURES = (
    Sequential | Standardise | StandardiseTargets | Flatten | GlobalAvgPool2d | GroupNorm | Last | Positions
)

AROUND: dict[str, Callable[[], list[Layer]]] = {
    **{
        f"{name} {options or ''}".strip(): lambda kind=kind, options=options: [kind(**options)]
        for name, kind in LAYERS.items()
        if not issubclass(kind, NOT_BETWEEN_ROWS_OF_FEATURES) and needs_nothing(kind)
        for options in settings_of(kind)
    },
    "gelu_tanh": lambda: [GELU("tanh")],
    "swiglu": lambda: [SwiGLU(HIDDEN, HIDDEN)],
    "two dropouts": lambda: [Dropout(0.5), Dropout(0.2)],
    "LayerNorm, large epsilon": lambda: [LayerNorm(epsilon=0.3)],
    "BatchNorm, momentum": lambda: [BatchNorm(momentum=0.5)],
    "BatchNorm, then ReLU": lambda: [BatchNorm(epsilon=0.3), ReLU()],
    "residual": lambda: [Residual(Linear(HIDDEN, HIDDEN), Tanh())],
    "residual of a residual": lambda: [Residual(Linear(HIDDEN, HIDDEN), Residual(ReLU(), LayerNorm()))],
    "sequential": lambda: [Sequential(Tanh(), Linear(HIDDEN, HIDDEN, bias=False))],
    "everything": lambda: [
        BatchNorm(),
        ReLU(),
        Dropout(0.3),
        Residual(Linear(HIDDEN, HIDDEN), LayerNorm(), GELU()),
        Softmax(),
    ],
}
"""What stands between two linear layers, by the rule it is there for."""


def around(name: str, rank: int) -> Case:
    """Return a case with one of ``AROUND``."""

    def network(dtype: str) -> Network:
        bias = "BatchNorm" not in name and name != "everything"  # its gradient is nothing but rounding there
        first, last = Linear(FEATURES, HIDDEN, bias), Linear(HIDDEN, OUTPUTS)
        inputs = (FEATURES,) if rank == 2 else (TIME, FEATURES)
        return Network(
            first, *AROUND[name](), last, loss=MeanSquaredError(), inputs=inputs, dtype=dtype
        )  # fmt: skip

    return Case(network, {"x": X[rank], "t": T[rank]}, rate=0.01)


def shared(dtype: str) -> Network:
    """Return a network that uses one layer three times."""
    twice = Linear(HIDDEN, HIDDEN)
    layers = [
        Linear(FEATURES, HIDDEN),
        twice,
        Tanh(),
        Residual(twice, ReLU()),
        twice,
        Linear(HIDDEN, OUTPUTS),
    ]
    return Network(*layers, loss=MeanSquaredError(), dtype=dtype)


def linear(rank: int, **more: Any) -> Case:
    """Return a case of linear layers alone, of one layout, with a bias or without."""
    inputs = (FEATURES,) if rank == 2 else (TIME, FEATURES)

    def network(dtype: str) -> Network:
        layers = [Linear(FEATURES, HIDDEN, **more), ReLU(), Linear(HIDDEN, OUTPUTS, **more)]
        return Network(*layers, loss=MeanSquaredError(), inputs=inputs, dtype=dtype)

    return Case(network, {"x": X[rank], "t": T[rank]})


def with_biases(network: Network) -> Network:
    """Draw all biases: a key's has no gradient but rounding, and at 0 that would be all it is."""
    rng = np.random.default_rng(3)
    for name, array in network.parameters.items():
        if name.startswith("b"):
            array[...] = rng.normal(size=array.shape)
    return network


def looked_up(rank: int, *layers: Layer) -> Case:
    """Return a case with an embedding in front, of one index a row or of several."""

    def network(dtype: str) -> Network:
        body = [Embedding(ENTRIES, HIDDEN), *layers, Linear(HIDDEN, OUTPUTS)]
        loss = SoftmaxCrossEntropy()
        return with_biases(Network(*body, inputs=() if rank == 1 else TIME, loss=loss, dtype=dtype))

    return Case(network, {"x": INDICES[rank], "t": CLASSES[rank + 1]})


HEADS, WIDTH = 3, 18


def over_places(*layers: Layer, inputs: tuple[int, ...] = (TIME, FEATURES)) -> Case:
    """Return a case with layers that mix the places of a sequence or an image."""

    def network(dtype: str) -> Network:
        body = [Linear(FEATURES, WIDTH), *layers, Linear(WIDTH, OUTPUTS)]
        return with_biases(Network(*body, loss=MeanSquaredError(), inputs=inputs, dtype=dtype))

    shapes = (ROWS, *inputs), (ROWS, *network("float32").output_shape[1:])
    x, t = (np.resize(given[3], shape) for given, shape in zip((X, T), shapes, strict=True))
    return Case(network, {"x": x, "t": t}, rate=0.01)


def wide(dtype: str) -> Network:
    """Return a network whose products are divided, by rows and by columns."""
    layers = [Linear(37, 83), ReLU(), Linear(83, 67, layout="out_in"), Tanh(), Linear(67, 41)]
    return Network(*layers, loss=MeanSquaredError(), dtype=dtype)


WIDE = {"x": RNG.normal(size=(150, 37)), "t": RNG.normal(size=(150, 41))}

NETWORKS: dict[str, Case] = {
    **{f"{name}, rank {rank}": around(name, rank) for name in AROUND for rank in (2, 3)},
    **{
        f"linear {layout}{'' if bias else ' without bias'}, rank {rank}": linear(rank, layout=layout, bias=bias)
        for layout in ("in_out", "out_in")
        for bias in (True, False)
        for rank in (2, 3)
    },
    "standardise": Case(
        lambda dtype: Network(
            Standardise(), Linear(FEATURES, HIDDEN), Tanh(), Linear(HIDDEN, OUTPUTS), StandardiseTargets(),
            loss=MeanSquaredError(), dtype=dtype,
        ),
        {"x": X[2], "t": T[2]},
    ),
    "standardise over all, rank 3": Case(
        lambda dtype: Network(
            Standardise(over="all"), Linear(FEATURES, OUTPUTS), inputs=(TIME, FEATURES),
            loss=MeanSquaredError(), dtype=dtype,
        ),
        {"x": X[3], "t": T[3]},
    ),
    **{
        f"{kind.__name__} over {times} times": Case(
            lambda dtype, kind=kind, times=times: Network(
                Reshape((times, TIME * FEATURES // times)), *([kind(FEATURES, 8)] if times > 1 else []),
                kind(8 if times > 1 else TIME * FEATURES, 4), Last(), Linear(4, OUTPUTS), inputs=(TIME, FEATURES),
                loss=MeanSquaredError(), dtype=dtype,
            ),
            {"x": X[3], "t": T[2]},
        )
        for kind in (RNN, LSTM, GRU)
        for times in (TIME, 1)
    },
    "truncated": over_places(RNN(WIDTH, 5, truncate=2), LSTM(5, 7, truncate=3), GRU(7, WIDTH, truncate=1)),
    "all times": Case(
        lambda dtype: Network(
            LSTM(FEATURES, 7), Residual(GRU(7, 7)), Linear(7, OUTPUTS), inputs=(TIME, FEATURES),
            loss=MeanSquaredError(), dtype=dtype,
        ),
        {"x": X[3], "t": T[3]},
    ),
    "last": Case(
        lambda dtype: Network(
            Linear(FEATURES, HIDDEN), Tanh(), Last(), Linear(HIDDEN, OUTPUTS), inputs=(TIME, FEATURES),
            loss=MeanSquaredError(), dtype=dtype,
        ),
        {"x": X[3], "t": T[2]},
        rate=0.01,
    ),
    "flatten": Case(
        lambda dtype: Network(
            Linear(FEATURES, HIDDEN), Tanh(), Flatten(), Linear(TIME * HIDDEN, OUTPUTS), inputs=(TIME, FEATURES),
            loss=MeanSquaredError(), dtype=dtype,
        ),
        {"x": X[3], "t": T[2]},
        rate=0.01,
    ),
    "one layer": Case(
        lambda dtype: Network(Linear(FEATURES, OUTPUTS), loss=MeanSquaredError(), dtype=dtype),
        {"x": X[2], "t": T[2]},
    ),
    "one output": Case(
        lambda dtype: Network(
            Linear(FEATURES, HIDDEN), ReLU(), Linear(HIDDEN, 1), loss=MeanSquaredError(), dtype=dtype
        ),
        {"x": X[2], "t": T[2][:, :1]},
    ),
    "one feature": Case(
        lambda dtype: Network(Linear(1, 1), Tanh(), Linear(1, 1), loss=MeanSquaredError(), dtype=dtype),
        {"x": X[2][:, :1], "t": T[2][:, :1]},
    ),
    "shared parameters": Case(shared, {"x": X[2], "t": T[2]}, rate=0.01),
    "embedding, rank 1": looked_up(1),
    "embedding, rank 2": looked_up(2),
    "embedding and layer_norm": looked_up(2, LayerNorm(), Dropout(0.2)),
    "positions": over_places(Positions(), LayerNorm()),
    "attention": over_places(SelfAttention(WIDTH, HEADS)),
    "causal attention": over_places(Positions(), SelfAttention(WIDTH, HEADS, causal=True)),
    "grouped-query attention": over_places(SelfAttention(WIDTH, 9, causal=True, rotary=True, key_heads=3)),
    "attention with padding": looked_up(
        2, *(SelfAttention(HIDDEN, causal=causal, padding=3 - causal) for causal in (True, False))
    ),
    "branches": over_places(
        Concat(Sequential(), Sequential(Linear(WIDTH, 7), Tanh()), Linear(WIDTH, 5)), Linear(WIDTH + 12, WIDTH), Tanh()
    ),
    "rotary attention": over_places(SelfAttention(WIDTH, HEADS, causal=True, rotary=True)),
    "transformer": over_places(
        Positions(),
        *(
            Residual(norm(), *layers)
            for norm in (LayerNorm, RMSNorm)
            for layers in (
                [SelfAttention(WIDTH, HEADS, causal=True, rotary=norm is RMSNorm)],
                [Linear(WIDTH, HIDDEN), GELU("tanh"), Linear(HIDDEN, WIDTH)],
                [SwiGLU(WIDTH, HIDDEN), Linear(HIDDEN, WIDTH)],
            )
        ),
        LayerNorm(),
    ),
    "groups of an image": over_places(
        GroupNorm(HEADS), ReLU(), GlobalAvgPool2d(), inputs=(2, 3, FEATURES)
    ),
    "deep": Case(
        lambda dtype: Network(
            Linear(FEATURES, 16), *(layer for _ in range(5) for layer in (ReLU(), Linear(16, 16))),
            Linear(16, OUTPUTS), loss=MeanSquaredError(), dtype=dtype,
        ),
        {"x": X[2], "t": T[2]},
    ),
}  # fmt: skip


def with_loss(loss: Loss, t: Any, rank: int, *, weighted: bool = False) -> Case:
    """Return a case with a loss."""
    inputs = (FEATURES,) if rank == 2 else (TIME, FEATURES)

    def network(dtype: str) -> Network:
        layers = [Linear(FEATURES, HIDDEN), Tanh(), Linear(HIDDEN, OUTPUTS)]
        return Network(*layers, loss=loss, inputs=inputs, dtype=dtype)

    return Case(network, {"x": X[rank], "t": t[rank]} | ({"w": W[rank]} if weighted else {}), rate=0.02)


CLASS_WEIGHT = [0.5, 2.0, 1.3]
TARGETS = {"regression": T, "labels": LABELS, "classification": CLASSES}
LOSSES: dict[str, tuple[Loss, Any]] = {
    **{
        name: (kind(), TARGETS[kind.task] if kind.least is None else LABELS)
        for name, kind in layers.LOSSES.items()
    },
    "huber, delta 0.3": (Huber(0.3), T),
    "penalised": (HalfSquaredError("mean", l2=0.3), T),
    "poisson, of all outputs, penalised": (Poisson("sum", l2=0.3), LABELS),
    "binary, of all outputs, smoothed": (BinaryCrossEntropy(outputs="sum", smoothing=0.2), LABELS),
    "classes, penalised": (SoftmaxCrossEntropy(l2=0.3), CLASSES),
    "binary, weighted": (BinaryCrossEntropy([2.0, 0.5, 1.5]), LABELS),
    "binary, one weight": (BinaryCrossEntropy(3.0), LABELS),
    "shares": (SoftmaxCrossEntropy("probabilities"), SHARES),
    "smoothing": (SoftmaxCrossEntropy(smoothing=0.1), CLASSES),
    "ignored": (SoftmaxCrossEntropy(ignored=-1), IGNORED),
    "class weight": (SoftmaxCrossEntropy(class_weight=CLASS_WEIGHT), CLASSES),
    "shares, class weight": (SoftmaxCrossEntropy("probabilities", class_weight=CLASS_WEIGHT), SHARES),
    "all of it": (SoftmaxCrossEntropy(smoothing=0.2, ignored=-1, class_weight=CLASS_WEIGHT), IGNORED),
}
"""Every loss as it comes, and at every option, with its targets."""

NETWORKS |= {
    f"{name}, rank {rank}{', row weights' if weighted else ''}": with_loss(loss, t, rank, weighted=weighted)
    for name, (loss, t) in LOSSES.items()
    for rank in (2, 3)
    for weighted in (False, True)
}


def with_optimiser(optimiser: Optimiser) -> Case:
    """Return a case with an optimiser; no activation, so that no gradient is nothing but rounding."""

    def network(dtype: str) -> Network:
        layers = [Linear(FEATURES, HIDDEN), Sigmoid(), Linear(HIDDEN, OUTPUTS)]
        return Network(*layers, loss=SoftmaxCrossEntropy(), dtype=dtype)

    return Case(network, {"x": X[2], "t": CLASSES[2]}, optimiser, optimiser.learning_rate)


NETWORKS |= {repr(row.optimiser): with_optimiser(row.optimiser) for row in UPDATES}
NETWORKS |= IMAGES


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_size", [40, 150])
def test_products_that_are_divided_agree(batch_size: int, dtype: str) -> None:
    """Sizes at which products have several parts, by rows and by columns; whoever does a part, its bits are the same."""
    case = Case(wide, WIDE, Adam(0.01, clip_norm=0.5), 0.01)
    expected = Training(ReferenceEngine(), case, dtype).run(batch_size)
    compiled = Training(CompiledEngine(), case, dtype)
    for count in (1, 2, 3):
        with threads(count, helped=False):
            found = compiled.run(batch_size)
        check_agreement(found, expected, dtype, f"{count} threads")
        with threads(count):
            check_same(compiled.run(batch_size), found)


@pytest.mark.parametrize("schedule", [StepDecay(every=1, factor=0.5), Cosine(warmup=1), OneCycle()], ids=repr)
def test_whole_trainings_agree(schedule: Schedule) -> None:
    """`train` itself: shuffled epochs, validation, a schedule."""
    runs = []
    for engine in ("compiled", "reference"):
        network = Network(
            Standardise(), Linear(FEATURES, HIDDEN), Tanh(), Linear(HIDDEN, OUTPUTS),
            loss=SoftmaxCrossEntropy(), dtype="float64",
        )  # fmt: skip
        history = train(
            network, X[2], CLASSES[2], validation=0.3, epochs=4, batch_size=5, optimiser=Adam(0.02),
            schedule=schedule, engine=engine,
        )  # fmt: skip
        assert history.facts["engine"] == engine
        losses = [(record.loss, record.validation_loss) for record in history.epochs]
        runs.append(network.arrays | {"losses": np.array(losses)})
    check_agreement(runs[0], runs[1], "float64", repr(schedule))


def test_every_rule_of_the_table_is_here() -> None:
    """A new rule has a network here, too."""
    used = set()
    for case in NETWORKS.values():
        made = case.network("float32")
        used |= {node.rule.name for node in made._connect(weighted="w" in case.arrays)[0].nodes}
    not_in_training = {"identity", "batch_norm_evaluation", "exponential", "unstandardise"}
    missing = {row.rule.name for row in TABLE} - used - not_in_training
    assert not missing, f"tests/engines/test_compiled_agreement.py: NETWORKS has no network with {missing}"


@pytest.mark.parametrize(
    "row", [row for row in TABLE if row.rule is not embedding], ids=lambda row: row.rule.name
)
def test_every_rule_is_compiled(row: Row) -> None:
    """An embedding's table has to be a parameter."""
    inputs = row.inputs(np.random.default_rng(0), 2, row.options[0])
    lower(execute_rule(row.rule, list(inputs.values()), **row.options[0]).program)


def test_batches_are_what_the_name_says() -> None:
    assert any(ROWS % size for size in BATCH_SIZES)
    assert any(size > ROWS for size in BATCH_SIZES)

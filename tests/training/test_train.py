"""The training loop: which rows, in which order, counted how; what it keeps and what it refuses."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import (
    SGD,
    Adam,
    BatchNorm,
    ConfigurationError,
    DataError,
    Dropout,
    HandgradError,
    History,
    Linear,
    Loss,
    MeanSquaredError,
    Network,
    OneCycle,
    ReLU,
    ShapeError,
    SoftmaxCrossEntropy,
    Standardise,
    StepDecay,
    Tanh,
    train,
)
from handgrad.engines import ENGINES, Epoch, ReferenceEngine
from handgrad.engines.reference import BoundReference
from handgrad.program import Program
from handgrad.training import EpochRecord
from handgrad.training.rows import BLOCK, MIXED, Subset

Array = NDArray[Any]

ROWS, FEATURES, OUTPUTS, CLASSES = 23, 5, 2, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, FEATURES)) * 2 + 1
T = RNG.normal(size=(ROWS, OUTPUTS))
CLASS = RNG.integers(0, CLASSES, ROWS)
TINY = SGD(1e-14)  # so that the weights stay what they are


def regression(**more: Any) -> Network:
    layers = [Linear(FEATURES, 7), Tanh(), Linear(7, OUTPUTS)]
    return Network(*layers, loss=MeanSquaredError(), **{"dtype": "float64", **more})


def classifier(loss: Loss | None = None, **more: Any) -> Network:
    layers = [Linear(FEATURES, 7), BatchNorm(), ReLU(), Dropout(0.3), Linear(7, CLASSES)]
    return Network(*layers, loss=loss or SoftmaxCrossEntropy(), **more)


def weights_of(network: Network) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in network.arrays.items()}


# -------------------------------------------------------------------------------------------- batches


@pytest.mark.parametrize("batch_size", [1, 7, ROWS, ROWS + 5])
def test_the_epochs_loss_is_the_mean_over_rows(batch_size: int) -> None:
    """A short last batch counts by its rows, not as a whole batch: no batch size changes the mean."""
    network = regression()
    exact = ((network.predict(X) - T) ** 2).mean()
    history = train(network, X, T, epochs=1, batch_size=batch_size, optimiser=TINY)
    assert history.epochs[0].loss == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("batch_size", [1, 7, ROWS, ROWS + 5])
def test_training_is_the_textbooks_loop(batch_size: int) -> None:
    """Linear regression by momentum, written out here, gives the same weights for every batch size."""
    network = Network(Linear(FEATURES, OUTPUTS), loss=MeanSquaredError(), dtype="float64")
    W, b = network.parameters["W1"].copy(), network.parameters["b1"].copy()
    vW, vb = np.zeros_like(W), np.zeros_like(b)
    for _ in range(3):
        for start in range(0, ROWS, batch_size):
            x, t = X[start : start + batch_size], T[start : start + batch_size]
            dz = 2 * (x @ W + b - t) / t.size
            vW, vb = 0.9 * vW + x.T @ dz, 0.9 * vb + dz.sum(axis=0)
            W, b = W - 0.03 * vW, b - 0.03 * vb
    train(network, X, T, epochs=3, batch_size=batch_size, optimiser=SGD(0.03, momentum=0.9), shuffle=False)
    np.testing.assert_allclose(network.parameters["W1"], W, rtol=1e-11)
    np.testing.assert_allclose(network.parameters["b1"], b, rtol=1e-11)


def test_every_epoch_takes_every_row_once() -> None:
    """Shuffling loses no row and doubles none."""
    x, t = np.eye(ROWS), np.arange(float(ROWS))
    network = Network(
        Linear(ROWS, 1, bias=False, initialiser="zeros"), loss=MeanSquaredError(), dtype="float64"
    )
    train(network, x, t, epochs=1, batch_size=1, optimiser=SGD(0.5))
    np.testing.assert_array_equal(network.parameters["W1"][:, 0], t)  # one step of 2 · ½ · error reaches t


# -------------------------------------------------------------------------------------------- seeds


def test_the_same_seed_gives_the_same_weights_and_another_seed_others() -> None:
    """Bit for bit, with shuffling, masks and validation rows all drawn from the seed."""
    made = [classifier() for _ in range(3)]
    histories = [
        train(network, X, CLASS, epochs=3, batch_size=7, validation=0.2, seed=seed)
        for network, seed in zip(made, (8, 8, 9), strict=True)
    ]
    assert weights_of(made[0]) == weights_of(made[1])
    losses = [[(r.loss, r.validation_loss) for r in history.epochs] for history in histories]
    assert losses[0] == losses[1] != losses[2]
    assert weights_of(made[0]) != weights_of(made[2])


def test_each_epoch_has_an_order_of_its_own_unless_it_is_not_to_shuffle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The order of the rows changes from epoch to epoch and with the seed; shuffle=False is the data's."""
    seen: list[list[int]] = []

    class Watched(BoundReference):
        def epoch(self, epoch: Epoch, progress: Any = None) -> tuple[float, float]:
            seen.append(epoch.order.tolist())
            return super().epoch(epoch, progress)

    class Watching(ReferenceEngine):
        def bind(self, program: Program, arrays: Any) -> BoundReference:
            return Watched(program, arrays)

    monkeypatch.setitem(ENGINES, "watching", Watching)
    for more in ({}, {}, {"seed": 1}, {"shuffle": False}):
        train(regression(), X, T, epochs=2, batch_size=7, engine="watching", **more)  # type: ignore[arg-type]
    assert seen[:2] == seen[2:4]
    assert seen[6:] == [list(range(ROWS))] * 2
    assert all(sorted(order) == list(range(ROWS)) for order in seen)
    assert len({tuple(order) for order in seen}) == 5


# -------------------------------------------------------------------------------------------- validation


def test_validation_rows_are_watched_and_not_learned_from() -> None:
    """The share kept aside has no influence on the weights: other targets there change the record only."""
    x = np.concatenate([X, X + 0.1])
    t = np.concatenate([T, T])
    plain, spoiled = regression(), regression()
    probe = regression()
    kept = train(probe, x, t, epochs=1, validation=0.25, optimiser=TINY).facts["rows"]
    assert kept == 46 - 12  # a quarter of 46, rounded
    aside = np.random.default_rng(3).permutation(46)[:12]
    history = train(plain, x, t, epochs=4, validation=0.25, seed=3)
    other = t.copy()
    other[aside] += 100
    worse = train(spoiled, x, other, epochs=4, validation=0.25, seed=3)
    assert weights_of(plain) == weights_of(spoiled)
    for record, other_record in zip(history.epochs, worse.epochs, strict=True):
        assert record.loss == other_record.loss
        assert record.validation_loss is not None
        assert other_record.validation_loss is not None
        assert other_record.validation_loss > record.validation_loss + 1000


def test_validation_arrays_are_measured_outside_training_after_each_epoch() -> None:
    """Loss and metric are those of the network as it answers: no dropout, running statistics."""
    network = classifier(dtype="float64")
    x, t = X + 0.3, CLASS
    expected: list[tuple[float, float]] = []

    def look(record: EpochRecord) -> None:
        p = network.predict(x)
        loss = -np.log(p[np.arange(ROWS), t]).mean()
        expected.append((loss, float((p.argmax(axis=1) == t).mean())))

    history = train(network, X, CLASS, epochs=3, batch_size=6, validation=(x, t), after_epoch=look)
    assert [r.validation_metric for r in history.epochs] == [metric for _, metric in expected]
    np.testing.assert_allclose(
        [r.validation_loss for r in history.epochs], [loss for loss, _ in expected], rtol=1e-12
    )
    assert len({loss for loss, _ in expected}) == 3


def test_row_weights_count_in_the_validation_share() -> None:
    """The weights of the rows kept aside weigh their loss and their metric."""
    w = np.random.default_rng(5).uniform(0, 3, ROWS)
    network = regression()
    history = train(network, X, T, sample_weight=w, epochs=1, validation=0.3, optimiser=TINY, seed=2)
    rows = np.random.default_rng(2).permutation(ROWS)[: round(0.3 * ROWS)]
    row_loss = ((network.predict(X[rows]) - T[rows]) ** 2).mean(axis=1)
    assert history.epochs[0].validation_loss == pytest.approx(np.average(row_loss, weights=w[rows]))
    y, t, v = network.predict(X[rows]), T[rows], w[rows, None]
    mean = (v * t).sum(axis=0) / v.sum()
    r2 = 1 - (v * (t - y) ** 2).sum(axis=0) / (v * (t - mean) ** 2).sum(axis=0)
    assert history.epochs[0].validation_metric == pytest.approx(r2.mean())


# -------------------------------------------------------------------------------------------- patience


def overfit(patience: int | None, epochs: int = 30) -> tuple[Network, History, list[dict[str, bytes]]]:
    """Train on noise, watching other noise, whose loss soon rises; return every epoch's weights too."""
    network = regression()
    seen: list[dict[str, bytes]] = []
    history = train(
        network, X, T, validation=(X[::-1].copy(), T), epochs=epochs, patience=patience, optimiser=Adam(0.03),
        after_epoch=lambda record: seen.append(weights_of(network)),
    )  # fmt: skip
    return network, history, seen


@pytest.mark.parametrize("patience", [1, 4])
def test_early_stopping_keeps_the_best_weights_exactly(patience: int) -> None:
    """It stops after so many epochs without a lower validation loss, with the weights of the lowest."""
    network, history, seen = overfit(patience)
    losses = [record.validation_loss or 0.0 for record in history.epochs]
    best = int(np.argmin(losses))
    assert history.stopped == "early"
    assert history.best_epoch == best + 1
    assert len(losses) == best + 1 + patience < 30
    assert weights_of(network) == seen[best] != seen[-1]


def test_patience_keeps_the_best_weights_when_all_epochs_are_run() -> None:
    """Also when there is no time to lose patience."""
    network, history, seen = overfit(patience=100, epochs=12)
    best = int(np.argmin([record.validation_loss or 0.0 for record in history.epochs]))
    assert (history.stopped, history.best_epoch, len(seen)) == ("finished", best + 1, 12)
    assert weights_of(network) == seen[best] != seen[-1]


def test_without_patience_the_last_weights_are_kept() -> None:
    """A rising validation loss is only recorded."""
    network, history, seen = overfit(patience=None, epochs=12)
    assert (history.stopped, history.best_epoch) == ("finished", None)
    assert weights_of(network) == seen[-1]


# -------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize(
    "made",
    [regression, lambda: Network(Linear(5, 3), loss=SoftmaxCrossEntropy(smoothing=0.1), dtype="float64")],
)
def test_weight_two_is_the_row_twice_and_weight_zero_no_row(made: Any) -> None:
    """In one full batch, whole weights are repeated rows: the same losses, the same weights."""
    weighted, repeated = made(), made()
    t = T if weighted.output_shape[-1] == OUTPUTS else CLASS
    w = np.random.default_rng(0).integers(0, 3, ROWS)
    rows = np.repeat(np.arange(ROWS), w)
    assert {0, 1, 2} == set(w.tolist())
    settings: dict[str, Any] = {"epochs": 4, "batch_size": 100, "optimiser": SGD(0.1, momentum=0.5)}
    first = train(weighted, X, t, sample_weight=w, **settings)
    second = train(repeated, X[rows], t[rows], **settings)
    for one, other in zip(first.epochs, second.epochs, strict=True):
        assert one.loss == pytest.approx(other.loss, rel=1e-12)
    for name, array in weighted.arrays.items():
        np.testing.assert_allclose(array, repeated.arrays[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_row_weights_weigh_the_epochs_loss_over_all_batches() -> None:
    """The mean over an epoch is over the weights of all rows, in whatever batches they came."""
    w = np.random.default_rng(0).uniform(0, 2, ROWS)
    network = regression()
    exact = np.average(((network.predict(X) - T) ** 2).mean(axis=1), weights=w)
    history = train(network, X, T, sample_weight=w, epochs=1, batch_size=4, optimiser=TINY)
    assert history.epochs[0].loss == pytest.approx(exact, rel=1e-9)


def test_row_weights_count_by_their_ratios() -> None:
    """However small they are: in the loss of an epoch, of a batch and of the validation rows, and in the metric."""
    w = np.random.default_rng(5).uniform(0, 2, ROWS)
    seen = []
    for scale in (1, 2.0**-20):  # a power of two rounds nothing
        batches: list[float] = []
        history = train(
            regression(), X, T, sample_weight=scale * w, epochs=2, validation=0.3, batch_size=4,
            after_batch=lambda record, batches=batches: batches.append(record.loss),
        )  # fmt: skip
        records = [(r.loss, r.validation_loss, r.validation_metric) for r in history.epochs]
        seen.append([*batches, *np.ravel(records)])
    np.testing.assert_allclose(seen[0], seen[1], rtol=1e-6)


# -------------------------------------------------------------------------------------------- records


def test_the_record_says_what_ran() -> None:
    """Epochs from 1, the last learning rate of each, the time it took, the facts."""
    network = regression()
    history = train(network, X, T, epochs=3, batch_size=10, schedule=StepDecay(every=2, factor=0.5))
    assert [record.epoch for record in history.epochs] == [1, 2, 3]
    assert [record.learning_rate for record in history.epochs] == [1e-3, 1e-3, 5e-4]
    assert all(record.seconds > 0 for record in history.epochs)
    assert all(record.validation_loss is None for record in history.epochs)
    assert (history.metric, history.stopped) == ("r2", "finished")
    facts = history.facts
    assert (facts["engine"], facts["rows"], facts["batch_size"]) == ("compiled", ROWS, 10)
    assert "BLAS" in facts["blas"] or "MKL" in facts["blas"]
    assert facts["threads"] >= 1
    assert facts["rows_per_second"] > 0


def test_a_schedule_reaches_the_steps() -> None:
    """Each batch is taken at its own rate: OneCycle's middle step is the long one."""
    network = Network(Linear(1, 1, bias=False, initialiser="zeros"), loss=MeanSquaredError(), dtype="float64")
    steps: list[float] = []
    train(
        network, np.ones((1, 1)), np.array([1e9]), epochs=10, batch_size=1, optimiser=SGD(1e-9),
        schedule=OneCycle(), after_epoch=lambda _: steps.append(float(network.parameters["W1"][0, 0])),
    )  # fmt: skip
    taken = np.diff([0.0, *steps])  # the gradient stays 2e9 as the steps are short: 2e9 · rate each
    np.testing.assert_allclose(taken, 2e9 * OneCycle().rates(1e-9, 10, 1), rtol=1e-6)


def test_standardise_is_fitted_on_the_training_rows_only() -> None:
    """Rows kept aside do not show in the mean and the deviation."""
    x = X.copy()
    network = Network(Standardise(), Linear(FEATURES, OUTPUTS), loss=MeanSquaredError(), dtype="float64")
    train(network, x, T, epochs=1, validation=0.3, seed=2)
    rows = np.sort(np.random.default_rng(2).permutation(ROWS)[round(0.3 * ROWS) :])
    np.testing.assert_allclose(network.states["mean1"], X[rows].mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(network.states["deviation1"], X[rows].std(axis=0), rtol=1e-12)


def test_rows_may_stay_on_the_disk(tmp_path: Path) -> None:
    """A mapped file trains as the array does, and is not changed."""
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    in_memory, on_disk = regression(), regression()
    train(in_memory, X, T, epochs=2, validation=0.2)
    train(on_disk, mapped, T, epochs=2, validation=0.2)
    assert weights_of(in_memory) == weights_of(on_disk)


@pytest.mark.parametrize("first", [[], [Standardise()]], ids=["as it is", "standardised"])
def test_rows_on_the_disk_may_be_more_than_memory_holds(tmp_path: Path, first: list[Any]) -> None:
    """Training works through a mapped file a part at a time, and never holds it as a whole."""
    rows = 400_000
    x = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float64, (rows, 10))
    x[::7] = 1.0
    network = Network(*first, Linear(10, 1), loss=MeanSquaredError())
    t = np.zeros((rows, 1), np.float32)
    tracemalloc.start()
    try:
        train(network, x, t, epochs=1, batch_size=4096)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < x.nbytes / 2


def test_rows_by_number_train_as_copies_of_them_do() -> None:
    """To the last bit, and the same rows are validated."""
    parts = np.array_split(np.random.default_rng(0).permutation(len(X)), 3)
    copied, numbered = regression(), regression()
    of_copies = train(copied, X[parts[0]], T[parts[0]], epochs=2, validation=(X[parts[1]], T[parts[1]]))
    history = train(numbered, X, T, rows=parts[0], epochs=2, validation=parts[1])
    assert weights_of(numbered) == weights_of(copied)
    assert [r.validation_loss for r in history.epochs] == [r.validation_loss for r in of_copies.epochs]


def test_the_rows_of_a_file_are_shuffled_in_windows(tmp_path: Path) -> None:
    """Each comes once; those of a window are of 64 blocks, in no order, and another epoch has other windows."""
    count, window = 147 * BLOCK - 99, BLOCK * MIXED
    mapped = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.uint8, (count, 1))
    subset = Subset({"x": mapped}, np.arange(count))
    shuffled = subset.shuffled(seed=3, epoch=0)
    order, other = np.asarray(shuffled), np.asarray(subset.shuffled(seed=3, epoch=1))
    for part in (
        slice(5, 9),
        slice(window - 3, window + 7),
        slice(window, count),
        slice(9, 9),
        slice(7, 2 * window),
    ):
        np.testing.assert_array_equal(shuffled[part], order[part])
    assert len(shuffled) == len(order)
    np.testing.assert_array_equal(np.sort(order), np.arange(count))
    blocks = [set((each[: window - 99] // BLOCK).tolist()) for each in (order, other)]
    assert [len(each) for each in blocks] == [MIXED, MIXED]
    assert blocks[0] != blocks[1]
    assert np.abs(np.diff(order[:window])).mean() > count / 5
    few = Subset({"x": mapped}, np.arange(window))
    np.testing.assert_array_equal(few.shuffled(3, 0), np.random.default_rng([3, 0]).permutation(window))


RESIDENT = """
import re, sys
from pathlib import Path
import numpy as np
from handgrad import Linear, MeanSquaredError, Network, Standardise, train
from handgrad.arrays import some_rows

def most_resident():
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

def fit(x):
    network, t = Network(Standardise(), Linear(64, 1), loss=MeanSquaredError()), np.zeros((len(x), 1), np.float32)
    numbers = np.arange(len(x))
    rows = {"rows": numbers[numbers % 100 > 0], "validation": numbers[::100]}
    train(network, x, t, epochs=1, batch_size=4096, engine=sys.argv[2], **rows)
    network.predict(some_rows(x, numbers[::50]))
    network.predict(x)

fit(np.ones((10_000, 64), np.float32))  # imports and compiles
start = most_resident()
fit(np.load(sys.argv[1], mmap_mode="r"))
print(most_resident() - start)
"""


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_the_pages_of_a_file_do_not_stay_resident(tmp_path: Path, engine: str) -> None:
    """Of 640 MB, checked, standardised, trained on, validated and predicted, less than half is ever there at once."""
    file = tmp_path / "x.npy"
    x = np.lib.format.open_memmap(file, "w+", np.float32, (2_500_000, 64))
    x[::1000] = 1
    done = subprocess.run(
        [sys.executable, "-c", RESIDENT, file, engine], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < x.nbytes / 2


def test_the_data_is_not_changed() -> None:
    """Neither rows, targets nor weights."""
    x, t, w = X.copy(), CLASS.copy(), np.ones(ROWS)
    train(classifier(), x, t, sample_weight=w, epochs=1)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(t, CLASS)
    np.testing.assert_array_equal(w, 1)


# -------------------------------------------------------------------------------------------- refusals

NAN = X.copy()
NAN[4, 2] = np.nan

REFUSED: dict[str, tuple[dict[str, Any], type[HandgradError], str]] = {
    "epochs": ({"epochs": 0}, ConfigurationError, "train: epochs is 0\n  fix    give a whole number, 1 or more"),
    "half an epoch": ({"epochs": 2.5}, ConfigurationError, "train: epochs is 2.5\n  fix    give a whole number, 1 or more"),
    "batch size": (
        {"batch_size": -1}, ConfigurationError, "train: batch_size is -1\n  fix    give a whole number, 1 or more"
    ),
    "patience": (
        {"patience": 0, "validation": 0.2}, ConfigurationError,
        "train: patience is 0\n  fix    give a whole number, 1 or more",
    ),
    "patience alone": (
        {"patience": 3}, ConfigurationError, "train: patience needs validation rows\n  fix    give validation=0.1"
    ),
    "seed": ({"seed": -3}, ConfigurationError, "train: seed is -3\n  fix    give a whole number, 0 or more"),
    "long seed": (
        {"seed": 2**64}, ConfigurationError, f"train: seed is {2**64}\n  fix    give a whole number, 0 or more"
    ),
    "engine": (
        {"engine": "refrence"}, ConfigurationError,
        "train: no engine is called 'refrence'\n  fix    did you mean 'reference'?",
    ),
    "validation 0": (
        {"validation": 0.0}, ConfigurationError,
        "train: validation is 0.0: 0 of 23 rows\n"
        "  fix    give a share between 0 and 1 that leaves rows on both sides, or arrays (x, t)",
    ),
    "validation below 0": (
        {"validation": -0.5}, ConfigurationError,
        "train: validation is -0.5: 0 of 23 rows\n"
        "  fix    give a share between 0 and 1 that leaves rows on both sides, or arrays (x, t)",
    ),
    "validation nan": (
        {"validation": float("nan")}, ConfigurationError,
        "train: validation is nan: 0 of 23 rows\n"
        "  fix    give a share between 0 and 1 that leaves rows on both sides, or arrays (x, t)",
    ),
    "validation all": (
        {"validation": 0.99}, ConfigurationError,
        "train: validation is 0.99: 23 of 23 rows\n"
        "  fix    give a share between 0 and 1 that leaves rows on both sides, or arrays (x, t)",
    ),
    "validation of three": (
        {"validation": [X, T, T]}, ConfigurationError,
        "train: validation holds 3 arrays\n  fix    give two, (x, t), or a share of the rows",
    ),
    "validation width": (
        {"validation": (X[:, :4], T)}, ShapeError,
        "the data has rows of (4,), the network takes (5,)\n  given  x(23, 4); layer 1 is Linear(5, 7)\n"
        "  fix    x(n, 5) would fit",
    ),
    "validation targets": (
        {"validation": (X, T[:4])}, DataError, "validation x has 23 rows and t has 4",
    ),
    "validation nan row": (
        {"validation": (NAN, T)}, DataError,
        "validation x[4, 2] is nan, and must be finite\n  fix    remove the row, or fill in the value",
    ),
    "no rows": ({"x": X[:0], "t": T[:0]}, DataError, "x has no rows"),
    "rows": ({"t": T[:5]}, DataError, "x has 23 rows and t has 5"),
    "nan": ({"x": NAN}, DataError, "x[4, 2] is nan, and must be finite\n  fix    remove the row, or fill in the value"),
    "nan target": (
        {"t": np.where(T[7, 1] == T, np.inf, T)}, DataError,
        "t[7, 1] is inf, and must be finite\n  fix    remove the row, or fill in the value",
    ),
    "text": ({"x": X.astype(str)}, DataError, "x holds <U32, not numbers"),
    "targets": (
        {"t": T[:, 0]}, ShapeError, "MeanSquaredError(): the targets are (23,), and 23 rows need (23, 2)"
    ),
    "weights shape": ({"sample_weight": np.ones(5)}, ShapeError, "sample_weight is (5,), and 23 rows need (23,)"),
    "weights sign": (
        {"sample_weight": np.where(np.arange(ROWS) == 6, -0.5, 1)}, DataError,
        "sample_weight of row 6 is -0.5, and must be finite, 0 or more",
    ),
    "weights nan": (
        {"sample_weight": np.where(np.arange(ROWS) == 6, np.nan, 1)}, DataError,
        "sample_weight of row 6 is nan, and must be finite, 0 or more",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_trained_is_refused_by_name(case: str) -> None:
    """Before anything is changed, with the setting or the row, both values and what to do."""
    given, error, message = REFUSED[case]
    network = regression()
    before = weights_of(network)
    with pytest.raises(error) as caught:
        train(network, **{"x": X, "t": T, **given})
    assert str(caught.value) == message
    assert weights_of(network) == before


def test_a_class_beyond_the_outputs_is_refused_by_row() -> None:
    """A label out of range names its row, its class and the outputs there are."""
    t = CLASS.copy()
    t[9] = 3
    with pytest.raises(DataError) as caught:
        train(classifier(), X, t)
    assert str(caught.value) == (
        "SoftmaxCrossEntropy(): the target of row 9 is class 3, and the network has 3 outputs (0 to 2)"
    )
    with pytest.raises(DataError, match="the targets hold float64, and classes are whole numbers"):
        train(classifier(), X, CLASS.astype(float))


def test_a_network_without_a_loss_is_refused() -> None:
    """It only predicts."""
    with pytest.raises(ConfigurationError, match="the network has no loss"):
        train(Network(Linear(FEATURES, OUTPUTS)), X, T)

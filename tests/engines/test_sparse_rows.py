"""Sparse rows: multiplied as they are, on both engines, to the numbers of dense ones."""

from __future__ import annotations

import re
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
    Checkpoints,
    DataError,
    Dropout,
    Linear,
    MeanSquaredError,
    Network,
    ReLU,
    ShapeError,
    SoftmaxCrossEntropy,
    Standardise,
    StandardiseTargets,
    TrainingError,
    train,
)
from handgrad.arrays import Fingerprint
from handgrad.engines import Epoch, UnsupportedLineError
from handgrad.engines.compiled import CompiledEngine
from handgrad.engines.compiled.matrix_products import find_ahead
from handgrad.explaining import explain
from handgrad.explaining.snapshots import Recorder
from handgrad.layers import Optimiser
from handgrad.training import measure_engines

from .agreement import BOUNDS, ROWS, Case, apart, check_agreement, check_case

pytestmark = pytest.mark.peers

Array = NDArray[Any]

FEATURES = 37
WIDTHS = (3, 71)  # below a vector; several vectors with a rest


def rows_of(indices: type[np.generic] = np.int32, entries: str = "float64", *, rows: int = ROWS) -> Any:
    """Return rows with entries in no order, some of them twice, two rows without any, the last among them."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 9, rows)
    lengths[[4, -1]] = 0
    starts = np.concatenate([[0], lengths.cumsum()])
    columns = rng.integers(0, FEATURES, starts[-1])
    columns[1] = columns[0]
    values = (
        rng.integers(-9, 9, len(columns)) / 4 if entries[0] in "fl" else rng.integers(0, 200, len(columns))
    )
    made = csr_array((rows, FEATURES), dtype=entries)  # its constructor would choose the type of the indices
    made.data = values.astype(entries)
    made.indices, made.indptr = columns.astype(indices), starts.astype(indices)
    assert not made.has_canonical_format
    return made


CLASSES = np.random.default_rng(6).integers(0, 4, ROWS)
WEIGHTS = np.random.default_rng(7).uniform(0.5, 2, ROWS)


def network(dtype: str = "float64", width: int = 71, *, l2: float = 0.0, bias: bool = True) -> Network:
    layers = [Linear(FEATURES, width, bias=bias), ReLU(), Linear(width, 4)]
    return Network(*layers, loss=SoftmaxCrossEntropy(l2=l2), dtype=dtype)


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("optimiser", [SGD(0.05), SGD(0.05, momentum=0.9), Adam(0.05)], ids=str)
def test_engines_agree(optimiser: Optimiser, width: int, dtype: str) -> None:
    """With gradients that are added to the weights in place, and stored ones."""
    arrays = {"x": rows_of(), "t": CLASSES, "w": WEIGHTS}
    check_case(Case(lambda dtype: network(dtype, width), arrays, optimiser), dtype)


@pytest.mark.parametrize("indices", [np.int32, np.int64])
@pytest.mark.parametrize(
    "entries", ["float32", "float64", "longdouble", "int8", "uint8", "int64", "uint16", "bool"]
)
def test_types_of_entries_and_indices(entries: str, indices: type[np.generic]) -> None:
    for dtype in BOUNDS:
        check_case(
            Case(lambda dtype: network(dtype, 5), {"x": rows_of(indices, entries), "t": CLASSES}), dtype, (6,)
        )


@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_trainings_are_those_of_dense_rows(engine: str, l2: float) -> None:
    """Validation rows, sample weights, early stopping and predictions too; and the program is the same text."""
    found = {}
    for form in ("toarray", "tocsr", "tocsc", "tocoo"):
        x, made = getattr(rows_of(), form)(), network(l2=l2)
        history = train(
            made, x, CLASSES, sample_weight=WEIGHTS, validation=0.3, patience=2, epochs=4, batch_size=5,
            engine=engine,
        )  # fmt: skip
        losses = [(each.loss, each.validation_loss, each.validation_metric) for each in history.epochs]
        found[form] = made.arrays | {
            "losses": np.array(losses, float),
            "answers": made.predict(x, batch_size=7),
        }
        assert history.facts["engine"] == engine
    for other in ("tocsr", "tocsc", "tocoo"):
        check_agreement(found[other], found["toarray"], "float64", other)


def test_gradients_are_those_of_dense_rows() -> None:
    made, x = network(), rows_of()
    found, expected = (made.gradients(each, CLASSES, WEIGHTS) for each in (x, x.toarray()))
    assert max(apart(found, expected).values()) < 1e-14
    assert np.abs(expected["W1"]).max() > 0.01


def test_validation_rows_may_be_sparse_where_the_others_are_dense() -> None:
    x, losses = rows_of(), []
    for watched in (x, x.toarray()):
        history = train(network(), x.toarray(), CLASSES, validation=(watched, CLASSES), epochs=1)
        losses.append(history.epochs[0].validation_loss)
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_no_rows_are_made_dense(engine: str) -> None:
    """A dense batch alone would need 64 MB."""
    from scipy.sparse import csr_array

    features, rows = 200_000, 60
    columns = np.arange(rows * 3) * 1000
    x = csr_array((np.ones(rows * 3), columns, np.arange(0, rows * 3 + 1, 3)), shape=(rows, features))
    made = Network(Linear(features, 2), loss=SoftmaxCrossEntropy())
    tracemalloc.start()
    try:
        train(made, x, np.arange(rows) % 2, validation=0.2, epochs=2, batch_size=40, engine=engine)
        made.predict(x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * made.parameters["W1"].nbytes < 30e6


def test_rows_of_one_are_not_multiplied_ahead() -> None:
    """What multiplies the next row on its way reads dense rows."""
    made, arrays = network(), {"x": rows_of(), "t": CLASSES}
    bound: Any = CompiledEngine().bind(made.program(SGD()).keeping("total", "count"), made.arrays)
    assert find_ahead(bound.schedule) is not None
    bound.epoch(Epoch(arrays, np.arange(ROWS), 1, np.full(ROWS, 0.1)))
    *_, plan = bound.plans.values()
    assert plan.carried.ahead is None


@pytest.mark.parametrize(
    "layer",
    [Standardise(), Dropout(0.5), BatchNorm(), ReLU(), Linear(FEATURES, 3, layout="out_in")],
    ids=repr,
)
def test_a_layer_that_does_more_than_multiply_needs_dense_rows(layer: Any) -> None:
    last = Linear(3 if isinstance(layer, Linear) else FEATURES, 4)
    made = Network(layer, last, loss=SoftmaxCrossEntropy(), inputs=FEATURES)
    for call in (made.predict, lambda x: train(made, x, CLASSES)):
        with pytest.raises(DataError) as error:
            call(rows_of())
        assert f"({made.nodes()[0].layer}) does more with it than `x @ W`" in str(error.value)
        assert "a Linear layer, its layout 'in_out', or give x.toarray()" in str(error.value)


def test_an_engine_that_is_given_what_it_cannot_multiply_names_the_line() -> None:
    made = Network(Standardise(), Linear(FEATURES, 4), loss=SoftmaxCrossEntropy(), inputs=FEATURES)
    bound = CompiledEngine().bind(made.loss_program(), made.arrays)
    with pytest.raises(UnsupportedLineError, match="x is sparse, and is not only multiplied here"):
        bound.epoch(Epoch({"x": rows_of(), "t": CLASSES}, np.arange(ROWS)))


def test_targets_are_standardised_beside_sparse_rows() -> None:
    layers = Linear(FEATURES, 5), ReLU(), Linear(5, 1), StandardiseTargets()
    answers = []
    for x in (rows_of(), rows_of().toarray()):
        made = Network(*layers, loss=MeanSquaredError(), dtype="float64")
        train(made, x, 1e6 * WEIGHTS[:, None], epochs=2)
        answers.append(made.predict(x))
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-10)


def test_errors_name_row_and_column() -> None:
    x = rows_of()
    x.data[7] = np.nan
    row = int(np.searchsorted(x.indptr, 7, "right")) - 1
    with pytest.raises(DataError, match=re.escape(f"x[{row}, {x.indices[7]}] is nan, and must be finite")):
        train(network(), x, CLASSES)
    with pytest.raises(ShapeError, match=r"the data has rows of \(36,\), the network takes \(37,\)"):
        network().predict(rows_of()[:, :36])
    with pytest.raises(DataError, match="t is a csr_array, and an array is needed"):
        train(network(), rows_of(), rows_of())
    x = rows_of()
    x.indices[3] = FEATURES
    with pytest.raises(DataError, match=r"x is a damaged sparse matrix: .*"):
        network().predict(x)


@pytest.mark.parametrize(
    ("name", "place", "number", "message"),
    [
        ("indices", 3, FEATURES, "outside its 37 columns"),
        ("indices", 3, -1, "outside its 37 columns"),
        ("indptr", 5, 100_000, "do not lie in its"),
        ("indptr", 0, -1, "do not lie in its"),
        ("indptr", -1, 10_000, "do not lie in its"),
    ],
)
def test_native_code_reads_nothing_outside(name: str, place: int, number: int, message: str) -> None:
    made, x = network(), rows_of()
    bound = CompiledEngine().bind(made.loss_program(), made.arrays)
    getattr(x, name)[place] = number
    with pytest.raises(IndexError, match=message):
        bound.epoch(Epoch({"x": x, "t": CLASSES}, np.arange(ROWS)))
    with pytest.raises(IndexError, match="the order holds 23, and there are 23 rows"):
        bound.epoch(Epoch({"x": rows_of(), "t": CLASSES}, np.array([ROWS])))


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_loss_that_is_not_finite_is_explained(engine: str) -> None:
    with pytest.raises(TrainingError, match="the learning rate: W"):
        train(network(), 1e3 * rows_of(), CLASSES, optimiser=SGD(1e6), epochs=50, engine=engine)
    with pytest.raises(TrainingError, match=r"x goes up to 2\.25e\+43, too large for float32"):
        train(network("float32"), rows_of() * 1e43, CLASSES, engine=engine)


def test_an_interrupted_training_resumes_on_the_same_sparse_rows(tmp_path: Path) -> None:
    def trained(x: Any, *, interrupted: bool = False, checkpoints: Checkpoints | None = None) -> Any:
        def interrupt(record: Any) -> None:
            if record.epoch == 2 and interrupted:
                raise KeyboardInterrupt

        made = network()
        train(made, x, CLASSES, epochs=4, after_epoch=interrupt, checkpoints=checkpoints)
        return made.arrays

    whole = trained(rows_of())
    trained(rows_of(), interrupted=True, checkpoints=Checkpoints(tmp_path))
    changed = rows_of()
    changed.indices[0] = (changed.indices[0] + 1) % FEATURES
    with pytest.raises(DataError, match="the numbers in x are others"):
        trained(changed, checkpoints=Checkpoints(tmp_path, resume=True))
    for name, array in trained(rows_of(), checkpoints=Checkpoints(tmp_path, resume=True)).items():
        np.testing.assert_array_equal(array, whole[name])


def test_a_fingerprint_is_of_positions_and_entries() -> None:
    mark = Fingerprint.of(rows_of())
    assert mark == Fingerprint.of(rows_of(np.int64))
    for name in ("indptr", "indices", "data"):
        other = rows_of()
        getattr(other, name)[3] += 1
        assert mark.change("x", Fingerprint.of(other)) == "the numbers in x are others"


def test_explanations_and_timings_take_sparse_rows() -> None:
    made, x = network(), rows_of()
    recorder = Recorder(made, x, CLASSES, epochs=2)
    train(made, x, CLASSES, epochs=2, after_epoch=recorder)
    assert str(explain(made, x, CLASSES)) == str(explain(made, x.toarray(), CLASSES))
    assert [
        time.problem
        for time in measure_engines(made, x, CLASSES, engines=["compiled", "reference"], seconds=0.01)
    ] == ["", ""]

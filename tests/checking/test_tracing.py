from array import array
from types import FunctionType

import numpy as np
import pytest

from handgrad.checking.forward_trace import ForwardTrace, UntraceableError, trace_forward
from handgrad.checking.forward_trace.traced_array import TracedArray

from . import forwards_to_trace as written

FUNCTIONS = [f for f in vars(written).values() if isinstance(f, FunctionType)]

# their way through the code hangs on the values: other inputs may take another branch
BRANCHING = {"pairs_in_loops", "scan", "softplus_loop", "left_out"}


def traced(name: str) -> ForwardTrace:
    function, inputs = written.FORWARDS[name]
    return trace_forward(lambda given: function(**given), inputs, FUNCTIONS)


def parts(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("name", written.FORWARDS)
def test_values_are_those_of_the_plain_pass_bit_for_bit(name):
    function, inputs = written.FORWARDS[name]
    before = dict(vars(written))
    trace = traced(name)
    assert all(vars(written)[key] is item for key, item in before.items())
    assert vars(written).keys() == before.keys()
    plain = parts(function(**inputs))
    assert len(plain) == len(trace.outputs)
    for index, part in zip(trace.outputs, plain, strict=True):
        np.testing.assert_array_equal(trace.values[index], part)


@pytest.mark.parametrize("name", sorted(set(written.FORWARDS) - BRANCHING))
def test_a_replay_on_other_inputs_is_the_forward_of_them(name):
    function, inputs = written.FORWARDS[name]
    draw = np.random.default_rng(5)
    shifted = {
        n: v * draw.uniform(0.9, 1.1, v.shape).astype(v.dtype)
        for n, v in inputs.items()
        if v.dtype.kind == "f"
    }
    fresh = inputs | shifted
    trace = traced(name)
    values = trace.replay(fresh)
    for index, part in zip(trace.outputs, parts(function(**fresh)), strict=True):
        np.testing.assert_allclose(
            values[index], part, rtol=1e-9 if values[index].dtype == float else 1e-5, atol=1e-12
        )


def test_operations_know_their_line_and_values_their_name():
    trace = traced("softmax")
    assert [trace.source(o) for o in trace.operations][-1] == "return e / np.sum(e, axis=1, keepdims=True)"
    (e,) = [i for i, name in trace.names.items() if name == "e"]
    assert trace.producer[e].name == "exp"
    assert [operation.name for operation in trace.operations if e in operation.inputs] == ["sum", "divide"]


def test_what_numpy_computes_on_the_way_is_at_the_users_line():
    trace = traced("through_numpys_source")
    chain = max(i for i, name in trace.names.items() if name == "chain")
    lines = {trace.source(o) for o in trace.operations if o.output in trace.ancestors(chain)}
    assert lines == {"chain = np.linalg.multi_dot([A, x, x.T]) + np.linalg.matrix_power(A, 3)"}


def test_what_is_made_of_numbers_is_a_constant():
    trace = traced("constant_arrays")
    assert {o.name for o in trace.operations} == {"multiply", "add", "getitem", "reshape"}


def test_only_what_reaches_the_output_smoothly_is_active():
    trace = trace_forward(lambda v: v["x"] * np.floor(v["x"]) * (v["x"] > 0), {"x": np.ones(3)})
    assert {o.name for o in trace.operations if o.output in trace.active} == {"multiply"}


# ------------------------------------------------------------------ nothing is left behind

CACHE: dict = {}
remembered = None
COUNT = np.zeros(2)


def keeps_things(x):
    global remembered
    remembered = np.exp(x)
    CACHE["mask"] = [x > 0]
    keeps_things.last = x * 2
    COUNT[0] += 1
    return remembered * CACHE["mask"][0]


def fails(x):
    CACHE["before"] = x
    raise KeyError("no")


def test_what_the_function_keeps_is_plain_afterwards():
    trace_forward(lambda given: keeps_things(**given), {"x": np.ones(3)}, [keeps_things])
    kept = [remembered, CACHE["mask"][0], keeps_things.last]
    assert [type(k) for k in kept] == [np.ndarray] * 3
    assert COUNT[0] == 0  # a trace is no call: what it writes to is a copy


def test_everything_is_put_back_when_the_forward_fails():
    before = {key: item for key, item in globals().items() if key != "CACHE"}
    with pytest.raises(UntraceableError, match="KeyError while tracing"):
        trace_forward(lambda given: fails(**given), {"x": np.ones(3)}, [fails])
    assert all(globals()[key] is item for key, item in before.items())
    assert "len" not in globals()
    assert type(CACHE["before"]) is np.ndarray


def test_inputs_are_not_changed():
    x = np.ones(3)

    def forward(given):
        given["x"] += 1
        return given["x"] * 2

    trace = trace_forward(forward, {"x": x})
    assert trace.values[trace.output].tolist() == [4, 4, 4]
    assert x.tolist() == [1, 1, 1]


# ------------------------------------------------------------------ what cannot be followed is said

UNSEEN = type("Holder", (), {"buffer": np.zeros(3)})


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        (lambda v: np.abs(np.fft.fft(v["x"])), "complex128 values"),
        (lambda v: UNSEEN.buffer.__setitem__(slice(None), v["x"]), "stored in"),
        (lambda v: np.add(v["x"], 1, out=UNSEEN.buffer), "writes into an array that the trace cannot see"),
        (lambda v: np.random.default_rng(0).normal(v["x"]), "stored in, or given to"),
        (lambda v: np.array(float(str(v["x"][0]))) * bool(array("d", v["x"])), "plain number"),
        (lambda v: v["x"].tobytes(), "method tobytes"),
        (lambda v: v["x"].reshape(7), "ValueError while tracing"),
    ],
)  # fmt: skip
def test_what_cannot_be_recorded_is_an_error_with_the_reason(forward, reason):
    with pytest.raises(UntraceableError, match=reason):
        trace_forward(forward, {"x": np.arange(1.0, 4.0)})


def shuffles(x):
    order = (4 * x).astype(int)
    np.random.default_rng(0).shuffle(order)
    return x[order]


def test_what_is_shuffled_in_place_cannot_be_recorded():
    with pytest.raises(UntraceableError, match="what shuffle gives depends on a computed value"):
        trace_forward(lambda given: shuffles(**given), {"x": np.arange(3.0) / 4}, [shuffles])


def chooses(x):
    return x * (2 if float(x.sum()) > 0 else 3)


def test_a_number_that_only_chooses_the_way_is_no_error():
    trace = trace_forward(lambda given: chooses(**given), {"x": np.ones(3)}, [chooses])
    assert [o.name for o in trace.operations] == ["multiply"]


def test_a_traced_value_passes_for_an_array():
    seen = []

    def forward(given):
        x = given["x"]
        seen.append(
            (isinstance(x, np.ndarray), isinstance(x[0, 0], float), x.shape, x.ndim, len(x), f"{x[0, 0]:.1f}")
        )
        assert type(x) is TracedArray
        return x

    trace_forward(forward, {"x": np.ones((2, 3))})
    assert seen == [(True, True, (2, 3), 2, 2, "1.0")]

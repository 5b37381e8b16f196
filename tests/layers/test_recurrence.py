"""Networks that carry a state through time: every gradient is PyTorch's and JAX's, and mistakes in it are noticed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import (
    GRU,
    LSTM,
    RNN,
    Adam,
    Last,
    Layer,
    Linear,
    MeanSquaredError,
    Network,
    ShapeError,
    SoftmaxCrossEntropy,
    TrainingError,
    check,
    explain,
    rules,
    train,
)
from handgrad.checking import Report
from handgrad.checking.check import check_in_stages
from handgrad.explaining.terminal import show_line, show_overview
from handgrad.program.lines_in_python import run_lines

from ..rules.table import TABLE

ROWS, TIMES, FEATURES, STATE, SECOND, CLASSES = 5, 7, 3, 4, 6, 2
KINDS = (RNN, LSTM, GRU)


def network(kind: type[Any], *, times: int = TIMES, dtype: str = "float64") -> Network:
    """Return two recurrences and a classifier of the last time."""
    layers: list[Layer] = [kind(FEATURES, STATE), kind(STATE, SECOND), Last(), Linear(SECOND, CLASSES)]
    return Network(*layers, loss=SoftmaxCrossEntropy(), inputs=(times, FEATURES), dtype=dtype, seed=3)


def batch(times: int = TIMES) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(ROWS, times, FEATURES)), rng.integers(0, CLASSES, ROWS)


def gradients(made: Network, x: Any, t: Any) -> dict[str, Any]:
    program = made.program(optimiser=None).without_updates()
    values = run_lines(program.lines, {"x": x.astype(made.dtype), "t": t, "n": len(x), **made.arrays})
    return {"loss": values["loss"]} | {name: values[f"d{name}"] for name in made.arrays}


@pytest.mark.peers
@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-12), ("float32", 1e-4)])
@pytest.mark.parametrize("kind", KINDS)
def test_every_gradient_is_pytorchs(torch: Any, kind: type[Any], dtype: str, bound: float) -> None:
    """With its own modules, whose second bias is 0 but for the part of the GRU that its gate multiplies."""
    made, (x, t) = network(kind, dtype=dtype), batch()
    rng = np.random.default_rng(1)
    for array in made.arrays.values():
        if array.ndim == 1:
            array[...] = rng.normal(size=array.shape)
    found, left = gradients(made, x, t), iter(made.arrays.values())
    modules = []
    for sizes in ((FEATURES, STATE), (STATE, SECOND)):
        module = getattr(torch.nn, kind.__name__)(*sizes, batch_first=True, dtype=getattr(torch, dtype))
        with torch.no_grad():
            for own in (module.weight_ih_l0, module.weight_hh_l0, module.bias_ih_l0):
                own.copy_(torch.tensor(next(left).T))
            module.bias_hh_l0.zero_()
            if kind is GRU:
                module.bias_hh_l0[-sizes[1] :] = torch.tensor(next(left))
        modules.append(module)
    W, b = (torch.tensor(each, requires_grad=True) for each in left)
    h = torch.tensor(x.astype(dtype))
    for module in modules:
        h = module(h)[0]
    loss = torch.nn.functional.cross_entropy(h[:, -1] @ W + b, torch.tensor(t))
    loss.backward()
    expected = [loss.detach()]
    for module in modules:
        expected += [module.weight_ih_l0.grad.T, module.weight_hh_l0.grad.T, module.bias_ih_l0.grad]
        expected += [module.bias_hh_l0.grad[-len(module.bias_hh_l0) // 3 :]] if kind is GRU else []
    for (name, ours), theirs in zip(found.items(), [*expected, W.grad, b.grad], strict=True):
        error = np.linalg.norm(ours - theirs.numpy()) / np.linalg.norm(theirs.numpy())
        assert error < bound, f"{name} is off by {error:.1e}"


@pytest.mark.peers
def test_every_gradient_of_an_lstm_is_jaxs() -> None:
    """Of a scan over time, differentiated by JAX."""
    import jax

    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(0)
    x, dy = rng.normal(size=(ROWS, TIMES, FEATURES)), rng.normal(size=(ROWS, TIMES, STATE))
    kept = [rng.normal(size=shape) for shape in ((FEATURES, 4 * STATE), (STATE, 4 * STATE), (4 * STATE,))]

    def weighed(x: Any, W: Any, U: Any, b: Any) -> Any:
        def step(carried: Any, x_t: Any) -> Any:
            h, c = carried
            i, f, g, o = jax.numpy.split(x_t @ W + h @ U + b, 4, axis=-1)
            sigmoid = jax.nn.sigmoid
            c = sigmoid(f) * c + sigmoid(i) * jax.numpy.tanh(g)
            h = sigmoid(o) * jax.numpy.tanh(c)
            return (h, c), h

        start = jax.numpy.zeros((ROWS, STATE))
        _, y = jax.lax.scan(step, (start, start), x.swapaxes(0, 1))
        return (y.swapaxes(0, 1) * dy).sum()

    expected = jax.grad(weighed, argnums=(0, 1, 2, 3))(x, *kept)
    found = rules.lstm.gradients(dy, x, *kept)
    for (name, ours), theirs in zip(found.items(), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_the_program_does_not_grow_with_the_sequence(kind: type[Any]) -> None:
    """Its loops are printed as loops, with each line's shape at one time."""
    short, long = (network(kind, times=times).program() for times in (5, 50))
    assert list(map(str, short.lines)) == list(map(str, long.lines))
    text = str(short)
    assert "\n  for t1 in range(x.shape[1]):\n      " in text
    assert "\n  for t2 in range(y1.shape[1]):\n      " in text


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_right_and_is_explained(kind: type[Any]) -> None:
    """Each line in a loop has its check, and its loop above it."""
    made, (x, t) = network(kind), batch()
    assert check(made).verdict == "right"
    explanation = explain(made, x, t, jacobians=["y1:U1"])
    assert {line.witness.verdict for line in explanation.lines if line.witness} == {"right"}
    shown = show_overview(explanation)
    assert "\n    for t2 in reversed(range(y1.shape[1])):\n  ✓     " in shown
    assert "for t1 in reversed(range(x.shape[1]))" in show_line(explanation, "dh1")
    assert "for t1 in range(x.shape[1]):" in explanation._repr_html_()


@pytest.mark.parametrize("local", ["c1", "i1", "h1"])
def test_a_jacobian_of_what_a_loop_fills_leaves_the_values_as_they_are(local: str) -> None:
    """It runs the loop again, in arrays of its own."""
    made, (x, t) = network(LSTM), batch()
    explanation = explain(made, x, t, jacobians=[f"{local}:U1", "y1:U1"], example=0)
    alone = explain(made, x, t, jacobians=["y1:U1"], example=0)
    assert explanation.jacobians[1] == alone.jacobians[0]
    assert explanation.ledger == alone.ledger


@pytest.mark.parametrize("kind", KINDS)
def test_it_remembers_what_came_first(kind: type[Any]) -> None:
    """The first of eight numbers says the class; the others are noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 8, 1))
    t = (x[:, 0, 0] > 0).astype(int)
    layers = kind(1, 12), Last(), Linear(12, 2)
    made = Network(*layers, loss=SoftmaxCrossEntropy(), inputs=(8, 1), dtype="float64")
    history = train(made, x, t, epochs=30, batch_size=20, optimiser=Adam(0.02))
    assert history.facts["engine"] == "compiled"
    assert history.epochs[-1].loss < 0.1


def test_a_value_that_is_not_finite_in_a_loop_is_named_by_its_line() -> None:
    made, (x, t) = network(LSTM), batch()
    made.arrays["U1"][...] = np.inf
    with pytest.raises(TrainingError, match=r"line `u1\[:, t1\] = .* gave NaN \(5, 7, 4, 4\)"):
        train(made, x, t, engine="reference")


def test_gates_of_another_size_are_named() -> None:
    with pytest.raises(ShapeError, match=r"lstm: axis G = 4 \* H is 16, but 15 in W\(3, 15\)\[1\]"):
        rules.lstm(np.ones((2, 5, 3)), np.ones((3, 15)), np.ones((4, 15)), np.ones(15))
    with pytest.raises(ShapeError, match="x has 2 axes"):
        Network(GRU(3, 4), inputs=3)


MISTAKES = {
    "two gates exchanged": ("dz[:, t, 0] =", "dz[:, t, 3] ="),
    "another gate's slope": ("g[:, t] * i[:, t] * (1 - i[:, t])", "g[:, t] * f[:, t] * (1 - f[:, t])"),
    "the cell's gradient is not carried": ("truncated(dc[:, t + 1] * f[:, t], t, truncate)", "0 * f[:, t]"),
    "the state's gradient is not carried": ("truncated(join_last(dz[:, t]) @ U.T, t, truncate)", "0 * dh[:, t]"),
    "truncated": ("join_last(dz[:, t]) @ U.T, t, truncate)", "join_last(dz[:, t]) @ U.T, t, 3)"),
    "the state's gradient is overwritten": ("dh[:, t + 1] += dy", "dh[:, t + 1] = dy"),
    "the cell's gradient is overwritten": ("dc[:, t + 1] += dh", "dc[:, t + 1] = dh"),
    "f of another time": ("dc[:, t + 1] * f[:, t], t", "dc[:, t + 1] * f[:, t - 1], t"),
    "the cell after f": ("dc[:, t + 1] * c[:, t] *", "dc[:, t + 1] * c[:, t + 1] *"),
    "the state after U": ("rows(h[:, :-1])", "rows(h[:, 1:])"),
    "the slope of the cell forgotten": (" * (1 - np.tanh(c[:, t + 1]) ** 2)", ""),
    "the bias averaged": ("rows(join_last(dz)).sum(axis=0)", "rows(join_last(dz)).mean(axis=0)"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_an_lstm_is_noticed(mistake: str, tmp_path: Path) -> None:
    source = Path(rules.lstm.forward.file).read_text(encoding="utf-8")
    before, _, rest = source.partition('@rule("N T D, D G, H G, G -> N T H"')
    head, text = before.partition("__all__")[0], rest.partition("@rule(")[0]
    right, wrong = MISTAKES[mistake]
    assert text.count(right) == 1
    file = tmp_path / "own_lstm.py"
    file.write_text(
        f'{head}@rule("N T D, D G, H G, G -> N T H"{text.replace(right, wrong)}', encoding="utf-8"
    )
    spec = importlib.util.spec_from_file_location("own_lstm", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def stop(report: Report) -> None:
        raise KeyboardInterrupt  # to name it takes longer: tests/checking/test_backpropagation_through_time.py

    assert check_in_stages(module.lstm, None, None, None, 0, stop).verdict == "wrong"


@pytest.mark.peers
@pytest.mark.parametrize("truncate", [1, 2, 3, 6])
@pytest.mark.parametrize("kind", KINDS)
def test_truncated_gradients_are_those_of_detached_states(torch: Any, kind: type[Any], truncate: int) -> None:
    """PyTorch's, whose states are detached after each segment, the last of which may be shorter."""
    rule = {RNN: rules.elman, LSTM: rules.lstm, GRU: rules.gru}[kind]
    row = next(row for row in TABLE if row.rule is rule)
    rng = np.random.default_rng(0)
    inputs = {name: rng.normal(size=v.shape) for name, v in row.inputs(rng, 2, {}).items()}
    inputs["x"] = rng.normal(size=(ROWS, TIMES, inputs["x"].shape[-1]))
    dy = rng.normal(size=rule(*inputs.values()).shape)
    tensors = {name: torch.tensor(v, requires_grad=True) for name, v in inputs.items()}
    row.peer(torch, *tensors.values(), truncate=truncate).backward(torch.tensor(dy))
    found, whole = (
        rule.gradients(dy, *inputs.values(), truncate=truncate),
        rule.gradients(dy, *inputs.values()),
    )
    for name, ours in found.items():
        np.testing.assert_allclose(ours, tensors[name].grad, rtol=0, atol=1e-12, err_msg=name)
    assert np.abs(found["U"] - whole["U"]).max() > 1e-3


def test_a_truncated_gradient_is_that_of_the_segment_alone() -> None:
    """What leaves the second segment reaches none of the first's times, and its own as if its first state were given."""
    rng = np.random.default_rng(0)
    x, dy = rng.normal(size=(ROWS, 6, FEATURES)), np.zeros((ROWS, 6, STATE))
    dy[:, 4:] = rng.normal(size=(ROWS, 2, STATE))
    kept = [rng.normal(size=shape) for shape in ((FEATURES, STATE), (STATE, STATE), (STATE,))]
    h = rules.elman(x, *kept)

    def forward(x: Any, W: Any, U: Any, b: Any) -> Any:
        state, total = h[:, 2], 0.0  # of the time before the segment, whatever W and U are
        for t in range(3, 6):
            state = np.tanh(x[:, t] @ W + state @ U + b)
            total += (state * dy[:, t]).sum()
        return total

    found = rules.elman.gradients(dy, x, *kept, truncate=3)
    assert not found["x"][:, :3].any()
    assert np.abs(rules.elman.gradients(dy, x, *kept)["x"][:, :3]).max() > 1e-3
    given = [x, *kept]
    for place, (name, gradient) in enumerate(found.items()):
        index = tuple(size - 1 for size in gradient.shape)
        ahead, behind = ([v.copy() for v in given] for _ in range(2))
        ahead[place][index] += 1e-6
        behind[place][index] -= 1e-6
        slope = (forward(*ahead) - forward(*behind)) / 2e-6
        assert gradient[index] == pytest.approx(slope, rel=1e-6), name


def test_truncation_is_a_line_of_the_loop() -> None:
    """And without it the line is as before."""
    programs = [
        Network(LSTM(3, 4, truncate=k), inputs=(7, 3), loss=MeanSquaredError()).program() for k in (None, 5)
    ]
    texts = [list(map(str, program.lines)) for program in programs]
    assert "dh1[:, t1] = join_last(dz1[:, t1]) @ U1.T" in texts[0]
    assert "dh1[:, t1] = truncated(join_last(dz1[:, t1]) @ U1.T, t1, 5)" in texts[1]
    assert "dc1[:, t1] = truncated(dc1[:, t1 + 1] * f1[:, t1], t1, 5)" in texts[1]

"""Functions of PyTorch, JAX and autograd are taken as their authors call them, and their contracts are judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from handgrad.checking import CheckError, check
from handgrad.checking.interfaces import pair_of
from handgrad.checking.interfaces.tensors import like
from handgrad.cli import group

pytestmark = pytest.mark.peers


def gradients(function: Any, *inputs: Any) -> dict[str, Any]:
    """Return the gradients that a function's own backward gives, for ones."""
    pair = pair_of(function, None, inputs)
    assert isinstance(pair.inputs, dict)
    output = pair.forward(**pair.inputs)
    upstream = tuple(map(np.ones_like, output)) if isinstance(output, tuple) else np.ones_like(output)
    return pair.backward(upstream, **pair.inputs)


def function_of(torch: Any, forward: Any, backward: Any) -> Any:
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Function", (torch.autograd.Function,), methods)


def test_options_of_any_kind_and_any_number_of_tensors_are_taken(torch: Any) -> None:
    def forward(ctx, mode, scale, bias, *parts):
        ctx.scale, ctx.number = (scale if mode == "scaled" else 1.0), len(parts)
        return ctx.scale * sum(parts[1:], parts[0]) + (0 if bias is None else bias)

    def backward(ctx, g):
        return None, None, None, *[ctx.scale * g] * ctx.number

    function = function_of(torch, forward, backward)
    found = gradients(function, "scaled", 0.5, None, torch.ones(2), np.ones(2))
    assert list(found) == ["parts[0]", "parts[1]"]
    assert np.array_equal(found["parts[1]"], [0.5, 0.5])
    assert (
        check(function.apply, inputs=("scaled", 0.5, None, torch.randn(2, 3), torch.randn(2, 3))).verdict
        == "right"
    )


def test_an_output_that_is_not_differentiable_is_left_out(torch: Any) -> None:
    def forward(ctx, x):
        values, places = x.max(1)
        ctx.save_for_backward(places)
        ctx.shape = x.shape
        ctx.mark_non_differentiable(places)
        return values, places

    def backward(ctx, g, _):
        (places,) = ctx.saved_tensors
        return torch.zeros(ctx.shape, dtype=g.dtype).scatter(1, places[:, None], g[:, None])

    assert check(function_of(torch, forward, backward), inputs={"x": torch.randn(4, 3)}).verdict == "right"


def test_what_changes_its_input_and_declares_it_is_right(torch: Any) -> None:
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.exp_()
        ctx.save_for_backward(x)
        return x

    assert (
        check(
            function_of(torch, forward, lambda ctx, g: g * ctx.saved_tensors[0]), inputs={"x": torch.randn(3)}
        ).verdict
        == "right"
    )


def test_a_kernel_of_float32_is_checked_in_float32(torch: Any) -> None:
    def forward(ctx, x):
        if x.dtype is not torch.float32:
            raise TypeError("float32 only")
        ctx.save_for_backward(x)
        return x * x * x

    report = check(
        function_of(torch, forward, lambda ctx, g: 3 * ctx.saved_tensors[0] ** 2 * g),
        inputs={"x": torch.randn(3, 3)},
    )
    assert report.verdict == "right"
    assert "it does not run in float64, and was checked in float32" in report.not_proved


def test_a_forgotten_gradient_is_zero(torch: Any) -> None:
    """Where its tensor is marked, or is a parameter by its name; a constant's may be None."""

    def forward(ctx, x, bias, cos):
        ctx.save_for_backward(cos)
        return (x + bias) * cos

    function = function_of(torch, forward, lambda ctx, g: (g * ctx.saved_tensors[0], None, None))
    x, bias, cos = torch.randn(3), torch.randn(3), torch.randn(3)
    assert gradients(function, x, bias, cos).keys() == {"x", "bias"}
    assert not np.any(gradients(function, x, bias, cos)["bias"])
    assert gradients(function, x.requires_grad_(), bias, cos).keys() == {"x"}
    assert gradients(function, x, bias, cos.requires_grad_()).keys() == {"x", "cos"}


def test_a_gradient_that_depends_on_who_else_needs_one_is_noticed(torch: Any) -> None:
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * y if ctx.needs_input_grad[1] else None), (g * x if ctx.needs_input_grad[1] else None)

    found = gradients(function_of(torch, forward, backward), torch.ones(2), torch.ones(2))
    assert np.array_equal(found["x"], [0, 0])
    assert np.array_equal(found["y"], [1, 1])


def test_what_is_saved_on_the_class_is_noticed(torch: Any) -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            Square.x = x
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * Square.x

    report = check(Square, inputs={"x": torch.randn(4)})
    assert report.verdict == "wrong"
    assert report.findings[0].code == "stale-or-mutated-state"


def test_a_wrong_double_backward_is_a_limit(torch: Any) -> None:
    """A value computed in forward is a constant to it; nothing is said of a backward that is marked."""

    def forward(ctx, x):
        ctx.y = x.detach() ** 2
        return x**3

    def backward(ctx, g):
        return 3 * g * ctx.y

    once = torch.autograd.function.once_differentiable
    for each, limited in ((backward, True), (once(backward), False)):
        pair = pair_of(function_of(torch, forward, each), None, {"x": torch.randn(4)})
        assert any("double backward" in limit for limit in pair.limits) == limited


def test_a_module_of_torch_is_checked_with_its_parameters(torch: Any) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh())
    report = check(module, inputs=(torch.randn(4, 3),))
    assert report.verdict == "right"
    assert [each.name for each in report.arguments] == ["input", "0.weight", "0.bias"]


def test_jax_rules_of_every_kind_are_taken() -> None:
    """Forward rules, trees, arguments that are not differentiated, jitted functions, functions that call them."""
    import jax

    @jax.custom_jvp
    def cube(x):
        return x**3

    cube.defjvp(lambda primals, tangents: (cube(*primals), 3 * primals[0] ** 2 * tangents[0]))

    def power(n, params, x):
        return params["scale"] * x**n

    rule = jax.custom_vjp(power, nondiff_argnums=(0,))
    rule.defvjp(
        lambda n, params, x: (rule(n, params, x), (params, x)),
        lambda n, kept, g: (
            {"scale": (g * kept[1] ** n).sum()},
            g * n * kept[0]["scale"] * kept[1] ** (n - 1),
        ),
    )
    x = jax.numpy.asarray([0.5, -1.5, 2.0])
    assert check(cube, inputs=(x,)).verdict == "right"
    assert check(jax.jit(cube), inputs={"x": x}).verdict == "right"
    assert check(lambda x: cube(x) + 1, inputs={"x": x}).verdict == "right"
    report = check(rule, inputs=(3, {"scale": 0.7}, x))
    assert report.verdict == "right"
    assert [each.name for each in report.arguments] == ["params.scale", "x"]


def test_a_function_of_jax_is_called_compiled_unless_it_reads_its_numbers() -> None:
    """JAX compiles a loop for each call anew, and slopes take hundreds of calls."""
    import jax

    called: list[bool] = []

    def decayed(x):
        called.append(isinstance(x, jax.core.Tracer))
        return jax.lax.scan(lambda h, each: (0.5 * h + each,) * 2, jax.numpy.zeros(()), x)[1]

    def reads(x):
        return x**2 if x[0] > 0 else x**3

    def with_rule(function, derivative):
        rule = jax.custom_vjp(function)
        rule.defvjp(lambda x: (function(x), x), lambda x, g: (derivative(x, g),))
        return rule

    def back(x, g):
        return jax.lax.scan(lambda h, each: (0.5 * h + each,) * 2, jax.numpy.zeros(()), g, reverse=True)[1]

    x = jax.numpy.asarray([0.5, -1.5, 2.0, 1.0])
    assert check(with_rule(decayed, back), inputs={"x": x}).verdict == "right"
    assert called.count(False) < 40
    square = with_rule(reads, lambda x, g: g * (2 * x if x[0] > 0 else 3 * x**2))
    assert check(square, inputs={"x": x}).verdict == "right"


def test_a_number_for_which_a_rule_of_jax_returns_no_gradient_is_a_constant() -> None:
    import jax

    smooth = jax.custom_vjp(lambda x, share: (1 - share) * x**2)
    smooth.defvjp(
        lambda x, share: (smooth(x, share), (x, share)),
        lambda kept, g: (2 * (1 - kept[1]) * kept[0] * g, None),
    )
    report = check(smooth, inputs=(jax.numpy.asarray([0.5, -1.5, 2.0]), 0.1))
    assert (report.verdict, [each.name for each in report.arguments]) == ("right", ["x"])
    assert "backward returns no dshare, and none was checked" in report.not_proved


def doubled(factor: float) -> Any:
    """Return twice its argument, with a rule for JAX that multiplies by a factor."""
    import jax

    rule = jax.custom_vjp(lambda x: 2 * x)
    rule.defvjp(lambda x: (2 * x, None), lambda _, g: (factor * g,))
    return rule


@pytest.mark.parametrize(("factor", "verdict"), [(2.0, "right"), (3.0, "wrong")])
def test_a_module_that_is_a_tree_of_arrays_is_checked_with_them(factor: float, verdict: str) -> None:
    """As Equinox's are: registered with JAX, called, and without a hash."""
    import jax

    rule = doubled(factor)

    @jax.tree_util.register_pytree_with_keys_class
    class Scale:
        __hash__ = None

        def __init__(self, weight):
            self.weight = weight

        def __call__(self, x, *, key=None):
            return rule(self.weight * x)

        def tree_flatten_with_keys(self):
            return [(jax.tree_util.GetAttrKey("weight"), self.weight)], None

        @classmethod
        def tree_unflatten(cls, _, leaves):
            return cls(*leaves)

    x = np.array([0.5, -1.5, 2.0])
    report = check(Scale(jax.numpy.asarray([1.0, -2.0, 0.3])), inputs=(x,))
    assert report.verdict == verdict
    assert [each.name for each in report.arguments] == ["x", "self.weight"]


@pytest.mark.parametrize(("factor", "verdict"), [(2.0, "right"), (3.0, "wrong")])
def test_a_function_of_jax_is_one_beside_torch_too(torch: Any, factor: float, verdict: str) -> None:
    """Its library is the one whose array it returns, whichever its module imports."""
    import jax

    rule = doubled(factor)
    names = {"torch": torch, "jax": jax, "rule": rule}
    function = eval("lambda params, x: rule(params['weight'] * x)", names)
    params = {"weight": jax.numpy.asarray([1.0, -2.0, 0.3])}
    report = check(function, inputs=(params, np.array([0.5, -1.5, 2.0])))
    assert report.verdict == verdict
    assert [each.name for each in report.arguments] == ["params.weight", "x"]


def test_a_rule_whose_forward_returns_another_value_is_an_error() -> None:
    import jax

    rule = jax.custom_vjp(lambda x: x * x)
    rule.defvjp(lambda x: (x * x + 1, x), lambda x, g: (2 * g * x,))
    with pytest.raises(CheckError, match="returns another value than the function itself"):
        check(rule, inputs=(np.ones(2),))


def test_a_rule_of_autograd_is_checked() -> None:
    from autograd import extend

    def build(factor: float) -> Any:
        @extend.primitive
        def squared(x):
            return x * x

        extend.defvjp(squared, lambda ans, x: lambda g: factor * g * x)
        return squared

    assert check(build(2.0), inputs={"x": np.array([1.0, -0.5, 2.0])}).verdict == "right"
    assert gradients(build(3.0), np.array([2.0]))["x"] == 6.0


def test_a_surrogate_is_what_a_backward_is_meant_to_differentiate(torch: Any) -> None:
    """Of PyTorch's functions, and of NumPy's; one of another shape is an error."""

    def forward(ctx, x, levels):
        ctx.save_for_backward(x)
        return torch.round(x * levels) / levels

    def backward(ctx, g):
        return g * (ctx.saved_tensors[0].abs() <= 1), None

    function, inputs = function_of(torch, forward, backward), (torch.linspace(-2, 2, 8), 4)
    report = check(function, inputs=inputs, surrogate=lambda x: x.clamp(-1, 1))
    assert report.verdict == "right"
    assert any("the surrogate" in each for each in report.not_proved)
    assert check(function, inputs=inputs, surrogate=lambda x: x).verdict == "wrong"
    with pytest.raises(CheckError, match="of the same shape"):
        check(function, inputs=inputs, surrogate=lambda x: x.sum())
    reversal = (lambda x: x * 1.0, lambda g, x: {"x": -0.5 * g}, {"x": np.array([1.0, -2.0, 0.3])})
    assert check(*reversal, surrogate=lambda x: -0.5 * x).verdict == "right"


# ------------------------------------------------------------------------- by hand, with another library's arrays


class _Layer:
    """A layer whose weights are tensors, in float32 as PyTorch makes them."""

    def __init__(self, torch: Any, factor: float) -> None:
        self.torch, self.factor = torch.tanh, factor
        self.weight, self.bias = torch.randn(3, 4), torch.randn(4)

    def __call__(self, x):
        self.x, self.y = x, self.torch(x @ self.weight + self.bias)
        return self.y

    def backward(self, grad):
        dz = grad * (1 - self.y**2)
        self.weight_grad, self.bias_grad = self.x.t() @ dz, self.factor * dz.sum(0)
        return dz @ self.weight.t()


def test_a_layer_of_tensors_is_judged_in_float64(torch: Any) -> None:
    report = check(_Layer(torch, 1.0), inputs={"x": torch.randn(5, 3)})
    assert report.verdict == "right"
    assert {each.name for each in report.arguments} == {"x", "weight", "bias"}
    assert max(each.error_bound for each in report.arguments) < 1e-7
    pair = pair_of(_Layer(torch, 2.0), None, {"x": torch.ones(5, 3)})
    right = pair_of(_Layer(torch, 1.0), None, {"x": torch.ones(5, 3)})
    given = dict(pair.inputs)  # type: ignore[call-overload]
    found, wanted = (each.backward(np.ones((5, 4)), **given) for each in (pair, right))
    assert np.array_equal(found["bias"], 2 * wanted["bias"])


def test_functions_of_jax_arrays_are_judged_in_float64() -> None:
    from jax import numpy as jnp

    def loss(w, X, y):
        d = X @ w - y
        return (d**2).mean(), 2 * X.T @ d / len(y)

    X, y = jnp.asarray([[1.0, 0.3], [-0.4, 2.0], [0.7, 0.6]]), jnp.asarray([0.2, 1.0, -1.0])
    report = check(loss, inputs={"w": jnp.asarray([0.5, -1.5]), "X": X, "y": y})
    assert report.verdict == "right"
    assert report.arguments[0].error_bound < 1e-7
    pair = check(lambda x: jnp.exp(x), lambda g, x: {"x": g * jnp.exp(x)}, {"x": X})
    assert pair.verdict == "right"


LAZY = """
import torch

class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.t(), x.t() @ g
"""


def test_a_function_is_drawn_inputs_and_takes_those_of_its_file(tmp_path: Path) -> None:
    def checked(source: str) -> Any:
        path = tmp_path / "product.py"
        path.write_text(source)
        return CliRunner().invoke(group, ["check", str(path)], standalone_mode=False)

    drawn = checked(LAZY)
    assert drawn.return_value == 0
    assert "dx (4, 3)" not in drawn.output
    given = checked(LAZY + '\nProduct_inputs = {"x": torch.randn(4, 3), "w": torch.randn(3, 2)}\n')
    assert given.return_value == 0
    assert "dx (4, 3)" in given.output


def test_an_array_in_reverse_becomes_a_tensor(torch: Any) -> None:
    """PyTorch takes no negative strides; inputs are judged in another order too."""
    example = torch.ones(3, dtype=torch.float64)
    assert like(example, np.arange(3.0)[::-1]).tolist() == [2.0, 1.0, 0.0]
    assert like(example, np.arange(3.0).reshape(1, 3)[::-1]).tolist() == [
        [0.0, 1.0, 2.0]
    ]  # contiguous for NumPy

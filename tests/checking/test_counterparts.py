"""PyTorch's and JAX's functions on NumPy's arrays give what they give on their own, and are traced: so do their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad.checking.adjoint.chain_rule import adjoints
from handgrad.checking.forward_trace import trace_forward
from handgrad.checking.interfaces.jax_on_numpy import _JaxModule
from handgrad.checking.interfaces.torch_on_numpy import TorchArray

pytestmark = pytest.mark.peers

TORCH = """
torch.erf(x); torch.erfc(x); F.gelu(x); F.gelu(x, approximate='tanh'); F.selu(x); F.mish(x); F.softsign(x)
F.relu6(4 * x); F.logsigmoid(x); F.hardsigmoid(3 * x); F.hardswish(3 * x); F.hardtanh(x, -0.5, 0.7); F.glu(x, dim=0)
F.glu(x, -1); F.softmax(x, 1); x.softmax(dim=0); F.log_softmax(x, dim=-1); torch.logsumexp(x, 1, keepdim=True)
F.normalize(x, dim=-1); F.layer_norm(x, (4,), w, eps=1e-3); F.layer_norm(x, (6, 4)); F.rms_norm(x, (4,), w, 1e-5)
F.cosine_similarity(x, y, dim=1); F.mse_loss(x, y); F.mse_loss(x, y, reduction='none'); F.l1_loss(x, y)
F.smooth_l1_loss(x, y, beta=0.5); F.huber_loss(x, y, delta=0.7); F.binary_cross_entropy(x.sigmoid(), y.sigmoid())
F.binary_cross_entropy_with_logits(x, y.sigmoid(), reduction='sum'); F.nll_loss(x.log_softmax(1), t)
F.cross_entropy(x, t); F.cross_entropy(x, t, ignore_index=2, label_smoothing=0.1); F.cross_entropy(x, y.softmax(1))
F.cross_entropy(x, t, reduction='none'); F.cross_entropy(x, t, ignore_index=2); F.one_hot(t) * x
F.one_hot(t, num_classes=4) * x; F.conv2d(v, k, k[:, 0, 0, 0]); F.conv2d(v, k, stride=2, padding=1)
F.max_pool2d(v, 2); F.avg_pool2d(v, (2, 3), 1); F.pad(v, (1, 2, 0, 1)); F.pad(x, (1, 1), value=0.5)
F.unfold(v, 3, padding=1); F.linear(x, y); F.embedding(t, x); torch.roll(x, 1, 0)
torch.roll(x, shifts=(1, 2), dims=(0, 1)); x.flip(0); torch.flip(x, dims=[0, 1]); x.cumsum(1); torch.cumprod(x, dim=0)
torch.gather(x, 1, t[:, None]); x.take_along_dim(t[:, None], dim=1); x.index_select(0, t)
torch.zeros_like(x).scatter_(1, t[:, None], x[:, :1]); x.scatter_add(0, t[None, :4], y[:1]); x.index_add(0, t, y)
torch.index_put(x, (t,), y, accumulate=True); x.masked_fill(y > 0, 0.0); x.masked_select(y > 0)
torch.where(y > 0, x, y); x.narrow(1, 1, 2); x.select(1, 2); torch.topk(x, 2, dim=-1)[0]; x.topk(2)[0]
torch.sort(x, 1, descending=True)[0]; x.clamp(min=0); x.clamp(-0.5, 0.5); x.clamp_min(0.1); torch.clip(x, max=0.3)
torch.lerp(x, y, 0.3); torch.addcmul(x, y, y, value=2); torch.addcdiv(x, y, y**2 + 1); torch.addmm(x @ y.T, x, y.T)
torch.baddbmm(x[None], x[None, :, :], (x.T @ y)[None], alpha=0.5); torch.add(x, y, alpha=2); x.sub(y, alpha=0.5)
torch.xlogy(x, y**2); torch.atan2(x, y); x.asinh(); torch.tensordot(x, y, dims=([0], [0]))
torch.einsum('ij,kj->ik', x, y); torch.cdist(x, y); torch.outer(w, w); x.repeat(2, 1); x.tile((2,))
x.repeat_interleave(2, dim=1); x.tril(); torch.triu(x, diagonal=1); x[:4].diagonal(); torch.diag(w); x.T.permute(1, 0)
x.permute(dims=(1, 0)); x.movedim(0, 1); torch.var_mean(x, dim=-1, keepdim=True, unbiased=False)[0]
x.var(0, unbiased=False); torch.std(x, dim=1); x.norm(dim=1); x.max(1).values; x.max(dim=1)[0]; torch.max(x, y)
x.amax(0); abs(x); x.abs().rsqrt(); x.unbind(0)[1]; x.chunk(2, dim=1)[1]; x.split([1, 3], dim=1)[1]; x.view(-1, 8)
x.flatten(); x.expand(2, 6, 4); x.unsqueeze(0).squeeze(0); torch.stack([x, y], dim=1); torch.cat((x, y), -1)
x.data.shape[0] * x; torch.exp2(x); (x**2).log2(); x.new_full((4,), 2.0) * x; x.mT @ y
"""
JAX = """
jax.nn.gelu(x); jax.nn.gelu(x, approximate=False); jax.nn.log_sigmoid(x); jax.nn.hard_tanh(x); jax.nn.soft_sign(x)
jax.nn.mish(x); jax.nn.one_hot(t, 4) * x; jax.nn.logsumexp(x, axis=1); jax.scipy.special.logsumexp(x)
jax.scipy.special.erf(x); jax.lax.erf(x); jax.lax.max(x, y); jax.lax.mul(x, y); jax.lax.logistic(x)
jax.lax.rsqrt(x**2); jax.lax.select(y > 0, x, y); jax.lax.neg(x)
jax.lax.scan(lambda c, r: (c * 0.5 + r, c), x[0], x)[1]; jax.lax.clamp(-0.5, x, 0.5); jax.lax.dot(x, y.T)
jax.vmap(lambda a, b: a @ b)(x, y); jax.vmap(lambda a, b: a * b, in_axes=(None, 0))(x, w); jax.vmap(jnp.sum, 1)(x)
jnp.take_along_axis(x, t[:, None], axis=1); jnp.einsum('ij,kj->ik', x, y); jnp.cumsum(x, 1); jnp.roll(x, 1, axis=0)
jnp.clip(x, min=-0.5, max=0.5); jnp.linalg.norm(x, axis=1); jnp.where(y > 0, x, y)
jax.tree_util.tree_map(lambda a: a * 2, {'a': x})['a']; jax.nn.softmax(x); x.var(0)
"""


def calls(text: str) -> list[str]:
    return [call.strip() for line in text.strip().splitlines() for call in line.split(";")]


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    floats = {"x": (6, 4), "y": (6, 4), "w": 4, "v": (2, 3, 6, 5), "k": (4, 3, 3, 3)}
    return {n: rng.normal(size=shape) for n, shape in floats.items()} | {"t": np.array([0, 3, 2, 1, 2, 0])}


def traced(call: str, names: dict[str, Any], wrap: Any) -> tuple[Any, dict[str, Any]]:
    """Return a call's value on NumPy's arrays, and the gradients of its sum by the trace of it."""
    given = arrays()
    whole = {"t": given.pop("t")}

    def run(values: dict[str, Any]) -> Any:
        found = eval(call, names | {n: wrap(v) for n, v in (values | whole).items()})
        return getattr(found, "array", found)

    trace = trace_forward(run, given)
    value = trace.values[trace.outputs[0]]
    found = adjoints(trace, trace.values, (np.ones(np.shape(value)),))
    return value, {n: found.get(k, np.zeros(np.shape(given[n]))) for n, k in trace.inputs.items()}


@pytest.mark.parametrize("call", calls(TORCH))
def test_a_function_of_torch_on_numpy_is_itself(torch: Any, call: str) -> None:
    names = {"torch": torch, "F": torch.nn.functional}
    given = {n: torch.from_numpy(v) for n, v in arrays().items()}
    leaves = {n: v.requires_grad_() for n, v in given.items() if n != "t"}
    wanted = eval(call, names | given)
    gradients = torch.autograd.grad(wanted.sum(), list(leaves.values()), allow_unused=True)
    value, found = traced(call, names, TorchArray)
    np.testing.assert_allclose(value, wanted.detach().numpy(), rtol=1e-10, atol=1e-12)
    for (name, leaf), gradient in zip(leaves.items(), gradients, strict=True):
        right = torch.zeros_like(leaf) if gradient is None else gradient
        np.testing.assert_allclose(found[name], right.numpy(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("call", calls(JAX))
def test_a_function_of_jax_on_numpy_is_itself(call: str) -> None:
    import jax

    given = arrays()
    whole = {"t": given.pop("t")}
    with jax.enable_x64(True):

        def own(values: dict[str, Any]) -> Any:
            return eval(call, {"jax": jax, "jnp": jax.numpy} | whole | values)

        leaves = {n: jax.numpy.asarray(v) for n, v in given.items()}
        wanted, right = np.asarray(own(leaves)), jax.grad(lambda values: own(values).sum())(leaves)
    value, found = traced(call, {"jax": _JaxModule(), "jnp": _JaxModule("numpy")}, lambda v: v)
    np.testing.assert_allclose(value, wanted, rtol=1e-10, atol=1e-12)
    for name in given:
        np.testing.assert_allclose(found[name], right[name], rtol=1e-6, atol=1e-8)

"""The table of vector-Jacobian products: reductions, and operations that only move entries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from handgrad.checking.adjoint.vjp_table import ENTRIES, Site, axes_text, entry, reduction_text
from handgrad.checking.forward_trace.operation import fill, operand_name
from handgrad.checking.forward_trace.spelling import NoTextError, forward_text, key_text

# ---------------------------------------------------------------------- reductions


def _axes(site: Site) -> tuple[int, ...]:
    """Return the axes of a reduction, counted from the front."""
    ndim, axis = len(site.shape(0)), site.option("axis")
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(int(k) % ndim for k in (axis if isinstance(axis, tuple) else (axis,))))


def _expanded(site: Site, name: str) -> str:
    """Return the text that gives a reduction's result its axes back: ``g[:, None]``."""
    return name if site.option("keepdims", False) else _with_axes(name, _axes(site), len(site.shape(0)))


def _with_axes(name: str, axes: Sequence[int], ndim: int) -> str:
    if tuple(axes) == tuple(range(len(axes))):
        return name  # broadcasting aligns the last axes
    key = ["None" if k in axes else ":" for k in range(ndim)]
    while key[0] == "None":
        key.pop(0)
    return f"{name}[{', '.join(key)}]"


def _count(site: Site) -> str:
    """Return the text of how many entries are reduced to one."""
    if len(_axes(site)) == len(site.shape(0)):
        return "a.size"
    count = " * ".join(f"a.shape[{k}]" for k in _axes(site))
    return f"({count})" if "*" in count else count


def _over(site: Site) -> str:
    """Return the options of a reduction over the same axes that keeps them."""
    axes = _axes(site)
    return "" if len(axes) == len(site.shape(0)) else f"axis={axes_text(axes)}, keepdims=True"


def _above_zero(site: Site, name: str) -> str:
    """Return a denominator: where it is 0, no gradient passes."""
    return name if np.all(site.out) else f"np.where({name} > 0, {name}, np.inf)"


@entry("sum", "mean", "max", "min", "var", "std", "prod")
def _reduction(site: Site) -> str | None:
    name, g, out = site.operation.name, _expanded(site, "g"), _expanded(site, "out")
    if site.option("where", True) is not True or site.option("initial") is not None:
        return None
    if name == "sum":
        return f"np.broadcast_to({g}, a.shape)"
    if name == "mean":
        return f"np.broadcast_to({g} / {_count(site)}, a.shape)"
    if name == "prod":
        return f"{g} * {out} / a" if np.all(site.value(0)) else None
    if name in ("max", "min"):  # at a tie each of the largest gets an equal share
        kept = site.out if site.option("keepdims", False) else np.expand_dims(site.out, _axes(site))
        hits = (site.value(0) == kept).sum(axis=_axes(site))
        return f"{g} * (a == {out})" + ("" if np.all(hits == 1) else f" / (a == {out}).sum({_over(site)})")
    ddof = site.option("ddof", 0)
    freedom = f"({_count(site)} - {ddof})" if ddof else _count(site)
    difference = f"(a - a.mean({_over(site)}))"
    if name == "var":
        return f"2 * {g} * {difference} / {freedom}"
    return f"{g} * {difference} / ({freedom} * {_above_zero(site, out)})"


@entry("cumsum", "cumprod")
def _cumulative(site: Site) -> str | None:
    """Sum from the end."""
    axis, ndim, is_sum = site.option("axis"), len(site.shape(0)), site.operation.name == "cumsum"
    if not is_sum and not np.all(site.value(0)):
        return None
    text = "g" if is_sum else "(g * out)"
    if axis is None or ndim == 1:
        text = f"{text}[::-1].cumsum()[::-1]" + ("" if ndim == 1 else ".reshape(a.shape)")
    else:
        key = ", ".join([":"] * (axis % ndim) + ["::-1"])
        text = f"{text}[{key}].cumsum(axis={axis % ndim})[{key}]"
    return text if is_sum else f"{text} / a"


@entry("norm")
def _norm(site: Site) -> str | None:
    order, axis = site.option("ord"), site.option("axis")
    count = len(site.shape(0)) if axis is None else len(np.atleast_1d(axis))
    g, out = _expanded(site, "g"), _expanded(site, "out")
    if order is None or (order == 2 and count == 1) or (order == "fro" and count == 2):
        return f"{g} * a / {_above_zero(site, out)}"
    if count == 1 and order == 1:
        return f"{g} * np.sign(a)"
    if count == 1 and order in (np.inf, -np.inf):
        return f"{g} * np.sign(a) * (np.abs(a) == {out})"
    return None


@entry("median")
def _median(site: Site) -> str | None:
    if len(_axes(site)) > 1 and site.option("axis") is not None:
        return None
    axis, count = site.option("axis"), np.size(site.value(0)) // np.size(site.out)
    end = ".reshape(a.shape)" if axis is None else ""
    rank = f"p = a.argsort(axis={axis}).argsort(axis={0 if axis is None else axis}){end}"
    low, high = (count - 1) // 2, count // 2
    hits = f"(p == {low})" if low == high else f"((p == {low}) + (p == {high})) / 2"
    return f"{rank}\n{_expanded(site, 'g')} * {hits}"


@entry("logaddexp.reduce", "logsumexp", "softmax", "log_softmax")
def _log_sum_exp(site: Site) -> str | None:
    over, name = _over(site), site.operation.name
    if site.option("b") is not None:
        return None
    if name == "softmax":
        return f"out * (g - (g * out).sum({over}))"
    if name == "log_softmax":
        return f"g - np.exp(out) * g.sum({over})"
    return f"{_expanded(site, 'g')} * np.exp(a - {_expanded(site, 'out')})"


# ---------------------------------------------------------------------- entries that move


@entry(
    "tile", "rot90", "diagonal", "take_along_axis", "np.lib.stride_tricks.sliding_window_view",
    "np.lib.stride_tricks.as_strided", "np.compress",
)  # fmt: skip
def _moved(site: Site) -> str | None:
    """Move the numbers of the entries in the same way: they tell where each entry went."""
    me = operand_name(site.k)
    try:
        text = forward_text(site.operation, {}, symbolic=False)
    except NoTextError:
        return None
    moved = re.sub(rf"\b{me}\b", f"np.arange({me}.size).reshape({me}.shape)", text)
    return f"d = np.zeros({me}.size)\nnp.add.at(d, {moved}, g)\nd.reshape({me}.shape)"


ENTRIES |= {
    "squeeze": "g.reshape(a.shape)", "swapaxes": "g.swapaxes({axis1}, {axis2})",
    "moveaxis": "np.moveaxis(g, {destination}, {source})", "flip": "np.flip(g, axis={axis})", "tril": "np.tril(g, {k})",
    "triu": "np.triu(g, {k})",
}  # fmt: skip


@entry("reshape")
def _reshape(site: Site) -> str:
    order = site.option("order")
    return f'g.reshape(a.shape, order="{order}")' if order else "g.reshape(a.shape)"


@entry("expand_dims")
def _expand_dims(site: Site) -> str:
    return f"g.squeeze(axis={axes_text(site.option('axis'))})"


@entry("transpose")
def _transpose(site: Site) -> str:
    axes = site.option("axes")
    if axes == tuple(range(len(axes)))[::-1]:
        return "g.T"
    return f"g.transpose({', '.join(str(int(k)) for k in np.argsort(axes))})"


@entry("broadcast_to")
def _broadcast_to(site: Site) -> str:
    return f"g{reduction_text(np.shape(site.out), site.shape(0))}"


@entry("repeat")
def _repeat(site: Site) -> str | None:
    axis, shape, times = site.option("axis"), site.shape(0), np.ravel(site.option("repeats"))
    if times.size > 1:
        return _moved(site)
    if axis is None:
        return f"g.reshape(-1, {times[0]}).sum(axis=1).reshape(a.shape)"
    sizes = [f"a.shape[{j}]" for j in range(len(shape))]
    sizes.insert(axis % len(shape) + 1, str(times[0]))
    return f"g.reshape({', '.join(sizes)}).sum(axis={axis % len(shape) + 1})"


@entry("roll")
def _roll(site: Site) -> str:
    shift, axis = site.option("shift"), site.option("axis")
    back = tuple(-int(s) for s in shift) if np.ndim(shift) else -int(shift)
    return f"np.roll(g, {back})" if axis is None else f"np.roll(g, {back}, axis={axis})"


@entry("diag")
def _diag(site: Site) -> str | None:
    k = site.option("k", 0)
    if len(site.shape(0)) == 2 and len(set(site.shape(0))) == 2:
        return _moved(site)
    return f"np.diag(g, {k})" if k else "np.diag(g)"


@entry("sort")
def _sort(site: Site) -> str:
    axis = site.option("axis", -1)
    if axis is None:
        return 'd = np.zeros_like(a)\nd.flat[a.argsort(axis=None, kind="stable")] = g\nd'
    order = f'a.argsort(axis={axis}, kind="stable").argsort(axis={axis})'
    return f"np.take_along_axis(g, {order}, axis={axis})"


@entry("concatenate")
def _concatenate(site: Site) -> str:
    axis = site.option("axis", 0) % len(site.shape(0))
    start = sum(site.shape(j)[axis] for j in range(site.k))
    stop = start + site.shape(site.k)[axis]
    end = "" if stop == np.shape(site.out)[axis] else stop
    return f"g[{', '.join([*[':'] * axis, f'{start or str()}:{end}'])}]"


@entry("stack")
def _stack(site: Site) -> str:
    axis = site.option("axis", 0) % np.ndim(site.out)
    return f"g[{', '.join([':'] * axis + [str(site.k)])}]"


@entry("pad")
def _pad(site: Site) -> str | None:
    mode, width = site.option("mode", "constant"), site.option("pad_width")
    if mode in ("edge", "wrap", "reflect", "symmetric"):
        return _moved(site)
    if mode != "constant":
        return None
    widths = np.broadcast_to(np.asarray(width), (len(site.shape(0)), 2)).tolist()
    return f"g[{', '.join(f'{low or str()}:{-high if high else str()}' for low, high in widths)}]"


# ---------------------------------------------------------------------- indexing


def _key(site: Site, first: int) -> tuple[tuple[Any, ...], list[Any], list[str]]:
    """Return an index, the arrays in it, which are the operands from `first` on, and their letters."""
    numbers = range(first, len(site.operation.inputs))
    return site.option("key"), [site.value(k) for k in numbers], [operand_name(k) for k in numbers]


def _is_list_of_entries(arrays: list[Any]) -> bool:
    """Whether an index could meet an entry more than once."""
    return any(np.asarray(i).dtype.kind in "iu" and np.ndim(i) for i in arrays)


@entry("getitem")
def _getitem(site: Site) -> str:
    key, arrays, names = _key(site, 1)
    if key in ((), (Ellipsis,)):
        return "g"
    if _is_list_of_entries(arrays):
        return f"d = np.zeros_like(a)\nnp.add.at(d, {key_text(key, names, as_value=True)}, g)\nd"
    return f"d = np.zeros_like(a)\nd[{key_text(key, names)}] = g\nd"


@entry("setitem")
def _setitem(site: Site) -> str | None:
    key, arrays, names = _key(site, 2)
    text = key_text(key, names)
    if site.k == 0:
        return f"d = g.copy()\nd[{text}] = 0\nd"
    shape, entries = site.shape(1), np.arange(np.size(site.out)).reshape(np.shape(site.out))
    taken = entries[fill(key, arrays)]
    if _is_list_of_entries(arrays) and len(np.unique(taken)) < np.size(taken):
        return None  # which of the values assigned to one entry stays is NumPy's secret
    extra = len(shape) - np.ndim(taken)
    if extra > 0:  # NumPy drops leading axes of length 1 of what is assigned
        return f"g[{text}]{reduction_text(np.shape(taken), shape[extra:])}.reshape(b.shape)"
    return f"g[{text}]{reduction_text(np.shape(taken), shape)}"


@entry("add_at")
def _add_at(site: Site) -> str:
    if site.k == 0:
        return "g"
    key, arrays, names = _key(site, 2)
    taken = np.shape(site.out[fill(key, arrays)])
    return f"g[{key_text(key, names)}]{reduction_text(taken, site.shape(1))}"

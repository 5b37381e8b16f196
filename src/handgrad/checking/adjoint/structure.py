"""The table of derivatives: reductions, and operations that only move entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.checking.adjoint.table import Site, entry, operand_name, reduction_text
from handgrad.checking.forward_trace.spelling import key_text, literal
from handgrad.checking.forward_trace.statements import Slot, fill

# ---------------------------------------------------------------------- reductions


def _plain_reduction(site: Site) -> bool:
    return site.option("where", True) is True and site.option("initial") is None


def _count(site: Site) -> str:
    """Return the text of how many entries are reduced to one."""
    axes, ndim = site.axes(), len(site.shape(0))
    if len(axes) == ndim:
        return "a.size"
    return " * ".join(f"a.shape[{k}]" for k in axes)


def _mean_text(site: Site) -> str:
    axes = site.axes()
    if len(axes) == len(site.shape(0)):
        return "a.mean()"
    return f"a.mean(axis={axes[0] if len(axes) == 1 else axes}, keepdims=True)"


@entry("sum")
def _sum(site: Site) -> str | None:
    return f"np.broadcast_to({site.expanded('g')}, a.shape)" if _plain_reduction(site) else None


@entry("mean")
def _mean(site: Site) -> str | None:
    count = _count(site)
    count = f"({count})" if "*" in count else count
    return f"np.broadcast_to({site.expanded('g')} / {count}, a.shape)" if _plain_reduction(site) else None


@entry("max", "min")
def _max(site: Site) -> str | None:
    """At a tie each of the largest gets an equal share."""
    if not _plain_reduction(site):
        return None
    g, out = site.expanded("g"), site.expanded("out")
    hits = site.value(0) == np.broadcast_to(_expand(site, site.out), site.shape(0))
    if np.all(hits.sum(axis=site.axes()) == 1):
        return f"{g} * (a == {out})"
    axes = site.axes()
    if len(axes) == len(site.shape(0)):
        return f"{g} * (a == {out}) / (a == {out}).sum()"
    return f"{g} * (a == {out}) / (a == {out}).sum(axis={axes[0] if len(axes) == 1 else axes}, keepdims=True)"


def _expand(site: Site, reduced: Any) -> Any:
    if site.option("keepdims", False):
        return reduced
    return np.expand_dims(reduced, site.axes())


@entry("var")
def _var(site: Site) -> str | None:
    if not _plain_reduction(site):
        return None
    return f"2 * {site.expanded('g')} * (a - {_mean_text(site)}) / {_freedom(site)}"


@entry("std")
def _std(site: Site) -> str | None:
    if not _plain_reduction(site):
        return None
    out = (
        site.expanded("out")
        if np.all(site.out)
        else f"np.where({site.expanded('out')} > 0, {site.expanded('out')}, np.inf)"
    )
    return f"{site.expanded('g')} * (a - {_mean_text(site)}) / ({_freedom(site)} * {out})"


def _freedom(site: Site) -> str:
    count, ddof = _count(site), site.option("ddof", 0)
    if ddof:
        return f"({count} - {ddof})"
    return f"({count})" if "*" in count else count


@entry("prod")
def _prod(site: Site) -> str | None:
    if not _plain_reduction(site) or not np.all(site.value(0)):
        return None
    return f"{site.expanded('g')} * {site.expanded('out')} / a"


def _backwards(site: Site, text: str) -> str:
    """Return the text of a cumulative sum from the end."""
    axis, ndim = site.option("axis"), len(site.shape(0))
    if axis is None or ndim == 1:
        summed = f"{text}[::-1].cumsum()[::-1]"
        return summed if ndim == 1 else f"{summed}.reshape(a.shape)"
    key = ", ".join([":"] * (axis % ndim) + ["::-1"])
    return f"{text}[{key}].cumsum(axis={axis % ndim})[{key}]"


@entry("cumsum")
def _cumsum(site: Site) -> str:
    return _backwards(site, "g")


@entry("cumprod")
def _cumprod(site: Site) -> str | None:
    return f"{_backwards(site, '(g * out)')} / a" if np.all(site.value(0)) else None


@entry("trace")
def _trace(site: Site) -> str | None:
    if len(site.shape(0)) != 2:
        return None
    offset = site.option("offset", 0)
    return f"g * np.eye(*a.shape, k={offset})" if offset else "g * np.eye(*a.shape)"


@entry("norm")
def _norm(site: Site) -> str | None:
    order, axis = site.option("ord"), site.option("axis")
    count = len(site.shape(0)) if axis is None else len(np.atleast_1d(axis))
    g, out = site.expanded("g"), site.expanded("out")
    if order is None or (order == 2 and count == 1) or (order == "fro" and count == 2):
        safe = out if np.all(site.out) else f"np.where({out} > 0, {out}, np.inf)"
        return f"{g} * a / {safe}"
    if count != 1:
        return None
    if order == 1:
        return f"{g} * np.sign(a)"
    if order in (np.inf, -np.inf):
        return f"{g} * np.sign(a) * (np.abs(a) == {out})"
    return None


# ---------------------------------------------------------------------- entries that move


@entry("reshape", "expand_dims", "squeeze")
def _reshape(site: Site) -> str:
    order = site.option("order")
    return f'g.reshape(a.shape, order="{order}")' if order else "g.reshape(a.shape)"


@entry("transpose")
def _transpose(site: Site) -> str:
    axes = site.option("axes")
    if axes == tuple(range(len(axes)))[::-1]:
        return "g.T"
    return f"g.transpose({', '.join(str(int(k)) for k in np.argsort(axes))})"


@entry("swapaxes")
def _swapaxes(site: Site) -> str:
    if len(site.shape(0)) == 2 and site.option("axis1") % 2 != site.option("axis2") % 2:
        return "g.T"
    return f"g.swapaxes({site.option('axis1')}, {site.option('axis2')})"


@entry("moveaxis")
def _moveaxis(site: Site) -> str:
    return f"np.moveaxis(g, {site.option('destination')}, {site.option('source')})"


@entry("broadcast_to")
def _broadcast_to(site: Site) -> str:
    return f"g{reduction_text(np.shape(site.out), site.shape(0))}"


@entry("repeat")
def _repeat(site: Site) -> str | None:
    repeats, axis, shape = site.option("repeats"), site.option("axis"), site.shape(0)
    if np.ndim(repeats) and np.size(repeats) > 1:
        if axis is None:
            return None
        rows = f"np.repeat(np.arange(a.shape[{axis % len(shape)}]), {literal(repeats, symbolic=False)})"
        key = ", ".join(["slice(None)"] * (axis % len(shape)) + [rows])
        return f"d = np.zeros_like(a)\nnp.add.at(d, ({key},), g)\nd"
    times = int(np.asarray(repeats).reshape(-1)[0])
    if axis is None:
        return f"g.reshape(-1, {times}).sum(axis=1).reshape(a.shape)"
    k = axis % len(shape)
    sizes = [f"a.shape[{j}]" for j in range(len(shape))]
    sizes.insert(k + 1, str(times))
    return f"g.reshape({', '.join(sizes)}).sum(axis={k + 1})"


@entry("tile")
def _tile(site: Site) -> str:
    shape, reps = site.shape(0), site.option("reps")
    times = tuple(int(r) for r in np.atleast_1d(reps))
    ndim = max(len(shape), len(times))
    times = (1,) * (ndim - len(times)) + times
    full = (1,) * (ndim - len(shape)) + tuple(shape)
    sizes = ", ".join(f"{r}, {n}" for r, n in zip(times, full, strict=True))
    axes = tuple(range(0, 2 * ndim, 2))
    return f"g.reshape({sizes}).sum(axis={axes if ndim > 1 else 0}).reshape(a.shape)"


@entry("flip")
def _flip(site: Site) -> str:
    axis = site.option("axis")
    return "np.flip(g)" if axis is None else f"np.flip(g, axis={axis})"


@entry("roll")
def _roll(site: Site) -> str:
    shift, axis = site.option("shift"), site.option("axis")
    back = tuple(-int(s) for s in shift) if isinstance(shift, tuple) else -int(shift)
    return f"np.roll(g, {back})" if axis is None else f"np.roll(g, {back}, axis={axis})"


@entry("rot90")
def _rot90(site: Site) -> str:
    axes = site.option("axes", (0, 1))
    end = "" if tuple(axes) == (0, 1) else f", axes={tuple(axes)}"
    return f"np.rot90(g, {-site.option('k', 1)}{end})"


@entry("diag", "diagonal")
def _diag(site: Site) -> str | None:
    shape, k = site.shape(0), site.option("k", 0) or site.option("offset", 0)
    if len(shape) == 1:
        return f"np.diag(g, {k})" if k else "np.diag(g)"
    if len(shape) != 2 or site.option("axis1", 0) != 0 or site.option("axis2", 1) != 1:
        return None
    rows = f"np.arange(g.size) + {-k}" if k < 0 else "np.arange(g.size)"
    columns = f"np.arange(g.size) + {k}" if k > 0 else "np.arange(g.size)"
    if shape[0] == shape[1]:
        return f"np.diag(g, {k})" if k else "np.diag(g)"
    return f"d = np.zeros_like(a)\nd[{rows}, {columns}] = g\nd"


@entry("tril", "triu")
def _triangle(site: Site) -> str:
    k = site.option("k", 0)
    return f"np.{site.operation.name}(g, {k})" if k else f"np.{site.operation.name}(g)"


@entry("sort")
def _sort(site: Site) -> str:
    axis = site.option("axis", -1)
    if axis is None:
        return 'd = np.zeros_like(a)\nd.flat[a.argsort(axis=None, kind="stable")] = g\nd'
    order = f'a.argsort(axis={axis}, kind="stable").argsort(axis={axis})'
    return f"np.take_along_axis(g, {order}, axis={axis})"


@entry("concatenate")
def _concatenate(site: Site) -> str:
    axis = site.option("axis", 0)
    if axis is None:
        start = sum(int(np.size(site.value(j))) for j in range(site.k))
        stop = start + int(np.size(site.value(site.k)))
        return f"g[{start or ''}:{stop}].reshape({operand_name(site.k)}.shape)"
    axis %= len(site.shape(0))
    start = sum(site.shape(j)[axis] for j in range(site.k))
    stop = start + site.shape(site.k)[axis]
    end = "" if stop == np.shape(site.out)[axis] else stop
    return f"g[{', '.join([*[':'] * axis, f'{start or str()}:{end}'])}]"


@entry("stack")
def _stack(site: Site) -> str:
    axis = site.option("axis", 0) % np.ndim(site.out)
    return f"g[{', '.join([':'] * axis + [str(site.k)])}]"


# ---------------------------------------------------------------------- indexing


def _key(site: Site, first: int) -> tuple[tuple[Any, ...], list[Any], list[str]]:
    count = len(site.operation.inputs)
    arrays = [site.value(k) for k in range(first, count)]
    return site.option("key"), arrays, [operand_name(k) for k in range(first, count)]


def is_repeating(shape: tuple[int, ...], key: tuple[Any, ...], arrays: list[Any]) -> bool:
    """Whether an index meets an entry more than once."""
    if not any(np.asarray(i).dtype.kind in "iu" and np.ndim(i) for i in arrays):
        return False
    marks = np.arange(int(np.prod(shape))).reshape(shape)[fill(key, arrays)]
    return bool(len(np.unique(marks)) < marks.size)


@entry("getitem")
def _getitem(site: Site) -> str:
    key, arrays, names = _key(site, 1)
    if key in ((), (Ellipsis,)):
        return "g"
    if any(np.asarray(i).dtype.kind in "iu" and np.ndim(i) for i in arrays):  # may repeat on other inputs
        return f"d = np.zeros_like(a)\nnp.add.at(d, {key_text(key, names, as_value=True)}, g)\nd"
    return f"d = np.zeros_like(a)\nd[{key_text(key, names)}] = g\nd"


@entry("setitem")
def _setitem(site: Site) -> str | None:
    key, arrays, names = _key(site, 2)
    text = key_text(key, names)
    if site.k == 0:
        return f"d = g.copy()\nd[{text}] = 0\nd"
    if is_repeating(site.shape(0), key, arrays):
        return None
    taken = np.shape(site.out[fill(key, arrays)])
    shape = site.shape(1)
    extra = len(shape) - len(taken)
    if extra > 0:  # NumPy drops leading axes of length 1 of what is assigned
        return f"g[{text}]{reduction_text(taken, shape[extra:])}.reshape(b.shape)"
    return f"g[{text}]{reduction_text(taken, shape)}"


@entry("add_at")
def _add_at(site: Site) -> str:
    if site.k == 0:
        return "g"
    key, arrays, names = _key(site, 2)
    taken = np.shape(site.out[fill(key, arrays)])
    return f"g[{key_text(key, names)}]{reduction_text(taken, site.shape(1))}"


@entry("take")
def _take(site: Site) -> str | None:
    if site.option("mode", "raise") != "raise":
        return None
    axis = site.option("axis")
    if axis is None:
        return "d = np.zeros_like(a)\nnp.add.at(d.ravel(), b, g)\nd"
    key = (slice(None),) * (axis % len(site.shape(0)))
    return f"d = np.zeros_like(a)\nnp.add.at(d, {key_text((*key, Slot(0)), ['b'], as_value=True)}, g)\nd"


@entry("take_along_axis")
def _take_along_axis(site: Site) -> str | None:
    shape, axis = site.shape(0), site.option("axis", -1)
    if axis is None:
        return "d = np.zeros_like(a)\nnp.add.at(d.ravel(), b, g)\nd"
    axis %= len(shape)
    parts = []
    for k in range(len(shape)):
        tail = ", None" * (len(shape) - 1 - k)
        parts.append("b" if k == axis else f"np.arange(a.shape[{k}])" + (f"[:{tail}]" if tail else ""))
    return f"d = np.zeros_like(a)\nnp.add.at(d, ({', '.join(parts)}{',' if len(parts) == 1 else ''}), g)\nd"

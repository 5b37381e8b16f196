"""The table of derivatives: functions that are recorded as one call, with their arguments as they were given."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.checking.adjoint.table import Site, entry, operand_name, reduction_text
from handgrad.checking.forward_trace.spelling import NoTextError, call_text, literal
from handgrad.checking.forward_trace.statements import Slot

# Their output's entries are entries of the first operand, wherever its values may lead.
GATHERING = (
    "np.lib.stride_tricks.sliding_window_view",
    "np.lib.stride_tricks.as_strided",
    "np.resize",
    "np.delete",
    "np.compress",
    "np.extract",
)


@entry(*GATHERING)
def _gather(site: Site) -> str | None:
    """Move an index array the same way: it says where each entry went."""
    me = operand_name(site.k)
    names = [operand_name(j) for j in range(len(site.operation.inputs))]
    names[site.k] = f"np.arange({me}.size).reshape({me}.shape)"
    try:
        moved = call_text(site.operation, names, {}, symbolic=False)
    except NoTextError:
        return None
    return f"d = np.zeros({me}.size)\nnp.add.at(d, {moved}, g)\nd.reshape({me}.shape)"


@entry("pad")
def _pad(site: Site) -> str | None:
    mode, width = site.option("mode", "constant"), site.option("pad_width")
    if mode in ("edge", "wrap", "reflect", "symmetric"):
        moved = f"np.pad(np.arange(a.size).reshape(a.shape), {literal(width, symbolic=False)}, {mode!r})"
        return f"d = np.zeros(a.size)\nnp.add.at(d, {moved}, g)\nd.reshape(a.shape)"
    if mode != "constant":
        return None
    widths = np.broadcast_to(np.asarray(width), (len(site.shape(0)), 2)).tolist()
    parts = [f"{low or ''}:{-high if high else ''}" for low, high in widths]
    return f"g[{', '.join(parts)}]"


@entry("np.median")
def _median(site: Site) -> str | None:
    axis = _only_axis(site)
    if axis is _UNKNOWN:
        return None
    count, end = (site.value(0).size, ".reshape(a.shape)") if axis is None else (site.shape(0)[axis], "")
    rank = f"p = a.argsort(axis={axis}).argsort(axis={0 if axis is None else axis}){end}"
    low, high = (count - 1) // 2, count // 2
    hits = f"(p == {low})" if low == high else f"((p == {low}) + (p == {high})) / 2"
    return f"{rank}\n{_expanded(site, 'g', axis)} * {hits}"


@entry("np.logaddexp.reduce", "logsumexp")
def _log_sum_exp(site: Site) -> str | None:
    axis = _only_axis(site, default=0 if site.operation.name == "np.logaddexp.reduce" else None)
    if axis is _UNKNOWN:
        return None
    return f"{_expanded(site, 'g', axis)} * np.exp(a - {_expanded(site, 'out', axis)})"


@entry("softmax", "log_softmax")
def _softmax(site: Site) -> str | None:
    axis = _only_axis(site)
    if axis is _UNKNOWN:
        return None
    over = "" if axis is None else f"axis={axis}, keepdims=True"
    if site.operation.name == "softmax":
        return f"out * (g - (g * out).sum({over}))"
    return f"g - np.exp(out) * g.sum({over})"


_UNKNOWN: Any = object()


def _only_axis(site: Site, default: Any = None) -> Any:
    """Return the axis of a call whose other arguments are usual; `_UNKNOWN` if they are not."""
    args, options = site.option("template")
    given = dict(zip(("axis",), args[1:], strict=False)) | options
    axis = given.pop("axis", default)
    given.pop("keepdims", None)
    if args[:1] != (Slot(0),) or len(args) > 2 or given or not isinstance(axis, (int, type(None))):
        return _UNKNOWN
    return axis if axis is None else axis % len(site.shape(0))


def _expanded(site: Site, name: str, axis: int | None) -> str:
    ndim = len(site.shape(0))
    if axis in (None, 0) or site.option("template")[1].get("keepdims") or ndim < 2:
        return name
    key = [":"] * axis + ["None"]
    return f"{name}[{', '.join(key)}]"


@entry("np.convolve", "np.correlate")
def _convolve(site: Site) -> str | None:
    """One-dimensional: the gradient of a convolution is a correlation, and the other way round."""
    args, options = site.option("template")
    given = dict(zip(("a", "v", "mode"), args, strict=False)) | options
    flipped = site.operation.name == "np.correlate"
    mode = given.get("mode", "valid" if flipped else "full")
    if (given.get("a"), given.get("v")) != (Slot(0), Slot(1)) or site.shape(0) < site.shape(1):
        return None
    n, m = site.shape(0)[0], site.shape(1)[0]
    before = {"full": 0, "same": m // 2 if flipped else (m - 1) // 2, "valid": m - 1}[mode]
    after = n + m - 1 - before - np.size(site.out)
    full = f"np.pad(g, ({before}, {after}))" if before or after else "g"
    if site.k == 0:
        return f'np.{"convolve" if flipped else "correlate"}({full}, b, "valid")'
    text = f'np.correlate({full}, a, "valid")'
    return f"{text}[::-1]" if flipped else text


@entry("cross")
def _cross(site: Site) -> str | None:
    if any(shape[-1:] != (3,) for shape in (site.shape(0), site.shape(1))) or site.operation.options:
        return None
    text = "np.cross(b, g)" if site.k == 0 else "np.cross(g, a)"
    return f"{text}{reduction_text(np.shape(site.out), site.shape(site.k))}"

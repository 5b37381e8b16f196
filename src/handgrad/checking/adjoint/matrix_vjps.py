"""The table of vector-Jacobian products: matrix products, einsum, convolution and linear algebra."""

from __future__ import annotations

import numpy as np

from handgrad.checking.adjoint.vjp_table import Site, entry, reduced, reduction_text
from handgrad.checking.forward_trace.operands import Slot, operand_name


def _transposed(name: str, ndim: int) -> str:
    return f"{name}.T" if ndim == 2 else f"{name}.swapaxes(-1, -2)"


@entry("matmul")
def _matmul(site: Site) -> str:
    a, b = len(site.shape(0)), len(site.shape(1))
    if a == 1 and b == 1:
        return "g * b" if site.k == 0 else "g * a"
    if a <= 2 and b <= 2:
        if b == 1:
            return "np.outer(g, b)" if site.k == 0 else "a.T @ g"
        if a == 1:
            return "b @ g" if site.k == 0 else "np.outer(a, g)"
        return "g @ b.T" if site.k == 0 else "a.T @ g"
    batch = np.shape(site.out)
    if b == 1:  # rows times a vector
        text = "g[..., None] * b" if site.k == 0 else "a * g[..., None]"
        full = (*batch, site.shape(1)[0])
    elif a == 1:  # a vector times matrices
        text = "(b @ g[..., None])[..., 0]" if site.k == 0 else "a[:, None] * g[..., None, :]"
        full = (*batch[:-1], site.shape(0)[0]) if site.k == 0 else (*batch[:-1], *site.shape(1)[-2:])
    else:
        text = f"g @ {_transposed('b', b)}" if site.k == 0 else f"{_transposed('a', a)} @ g"
        full = (*batch[:-2], *site.shape(site.k)[-2:])
    return reduced(text, full, site.shape(site.k))


@entry("einsum")
def _einsum(site: Site) -> str | None:
    labels = _einsum_labels(site)
    if labels is None or site.option("dtype") is not None:
        return None
    terms, out = labels
    mine = terms[site.k]
    if any(len(set(term)) < len(term) for term in terms):
        return None
    others = [(terms[j], operand_name(j)) for j in range(len(terms)) if j != site.k]
    known = set(out).union(*(term for term, _ in others))
    me = operand_name(site.k)
    others += [(n, f"np.ones({me}.shape[{k}])") for k, n in enumerate(mine) if n not in known]
    left = ",".join([out, *(term for term, _ in others)])
    text = f'np.einsum("{left}->{mine}", {", ".join(["g", *(name for _, name in others)])})'
    sizes = {n: s for j, term in enumerate(terms) for n, s in zip(term, site.shape(j), strict=True) if s != 1}
    return text + reduction_text(tuple(sizes.get(n, 1) for n in mine), site.shape(site.k))


def _einsum_labels(site: Site) -> tuple[list[str], str] | None:
    """Return the letters of each operand and of the output, with "..." spelled out."""
    subscripts = site.option("subscripts").replace(" ", "")
    left, arrow, out = subscripts.partition("->")
    terms = left.split(",")
    free = [n for n in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if n not in subscripts]
    depths = [
        len(site.shape(j)) - len(term.replace("...", "")) if "..." in term else 0
        for j, term in enumerate(terms)
    ]
    deepest = max(depths)
    if deepest > len(free) or (arrow and deepest and "..." not in out):
        return None
    dots = "".join(free[:deepest])
    if not arrow:
        plain = "".join(terms).replace("...", "")
        out = "..." + "".join(sorted(n for n in set(plain) if plain.count(n) == 1))
    spelled = [
        term.replace("...", dots[deepest - depth :] if depth else "")
        for term, depth in zip(terms, depths, strict=True)
    ]
    return spelled, out.replace("...", dots)


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


# ---------------------------------------------------------------------- linear algebra


@entry("solve")
def _solve(site: Site) -> str:
    a, b, out = len(site.shape(0)), len(site.shape(1)), np.shape(site.out)
    if a > 2 and b == 1:
        flipped = "np.linalg.solve(a.swapaxes(-1, -2), g[..., None])[..., 0]"
        if site.k == 0:
            return f"d = {flipped}\n-d[..., :, None] * out[..., None, :]"
        return flipped + reduction_text(out, site.shape(1))
    solved = f"np.linalg.solve({_transposed('a', a)}, g)"
    if site.k == 1:
        return solved + reduction_text(out, site.shape(1))
    if b == 1:
        return f"-np.outer({solved}, out)"
    text = f"-{solved} @ {_transposed('out', len(out))}"
    return reduced(text, (*out[:-2], *site.shape(0)[-2:]), site.shape(0))


@entry("inv")
def _inv(site: Site) -> str:
    flipped = _transposed("out", np.ndim(site.out))
    return f"-{flipped} @ g @ {flipped}"


@entry("det", "logabsdet")
def _det(site: Site) -> str:
    is_batch, g = len(site.shape(0)) > 2, "g * out" if site.operation.name == "det" else "g"
    g = f"({g})[..., None, None]" if is_batch else g
    return f"{g} * np.linalg.inv({_transposed('a', len(site.shape(0)))})"


@entry("cholesky")
def _cholesky(site: Site) -> str | None:
    """NumPy reads the lower triangle only: that is where the gradient is."""
    if len(site.shape(0)) != 2 or site.option("upper", False):
        return None
    return (
        "p = np.tril(out.T @ g)\n"
        "p[np.diag_indices(len(p))] *= 0.5\n"
        "d = np.linalg.solve(out.T, np.linalg.solve(out.T, p.T).T)\n"
        "np.tril(d + d.T) - np.diag(np.diag(d))"
    )

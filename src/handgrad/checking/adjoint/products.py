"""The table of derivatives: products, and linear algebra."""

from __future__ import annotations

import numpy as np

from handgrad.checking.adjoint.table import Site, entry, operand_name, reduction_text


def _transposed(name: str, ndim: int) -> str:
    return f"{name}.T" if ndim == 2 else f"{name}.swapaxes(-1, -2)"


@entry("matmul")
def _matmul(site: Site) -> str:
    a, b, out = len(site.shape(0)), len(site.shape(1)), np.ndim(site.out)
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
    assert out >= 1
    summed = reduction_text(full, site.shape(site.k))
    return f"({text}){summed}" if summed else text


@entry("dot")
def _dot(site: Site) -> str | None:
    a, b = len(site.shape(0)), len(site.shape(1))
    if not a or not b:
        text, other = ("g * b", 1) if site.k == 0 else ("g * a", 0)
        return text if len(site.shape(site.k)) or not site.shape(other) else f"({text}).sum()"
    if b == 1 or (a <= 2 and b <= 2):
        return _matmul(site)
    return _contraction(site, (a - 1,), (b - 2,))


@entry("inner")
def _inner(site: Site) -> str | None:
    a, b = len(site.shape(0)), len(site.shape(1))
    if a == 1 and b == 1:
        return "g * b" if site.k == 0 else "g * a"
    if not a or not b:
        return _dot(site)
    return _contraction(site, (a - 1,), (b - 1,))


@entry("vdot")
def _vdot(site: Site) -> str:
    one = len(site.shape(0)) == 1 and len(site.shape(1)) == 1
    other, mine = ("b", "a") if site.k == 0 else ("a", "b")
    return f"g * {other}" if one else f"g * {other}.reshape({mine}.shape)"


@entry("outer")
def _outer(site: Site) -> str:
    a, b = (n if len(site.shape(j)) == 1 else f"{n}.ravel()" for j, n in enumerate("ab"))
    text = f"g @ {b}" if site.k == 0 else f"{a} @ g"
    return text if len(site.shape(site.k)) == 1 else f"({text}).reshape({operand_name(site.k)}.shape)"


@entry("tensordot")
def _tensordot(site: Site) -> str:
    axes, a, b = site.option("axes", 2), len(site.shape(0)), len(site.shape(1))
    if isinstance(axes, (int, np.integer)):
        return _contraction(site, tuple(range(a - axes, a)), tuple(range(axes)))
    left, right = (tuple(int(k) for k in np.atleast_1d(part)) for part in axes)
    return _contraction(site, tuple(k % a for k in left), tuple(k % b for k in right))


def _contraction(site: Site, left: tuple[int, ...], right: tuple[int, ...]) -> str:
    """Return the entry of a sum over pairs of axes, as an einsum in the operands' own letters."""
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    shared = [next(letters) for _ in left]
    a = [shared[left.index(k)] if k in left else next(letters) for k in range(len(site.shape(0)))]
    b = [shared[right.index(k)] if k in right else next(letters) for k in range(len(site.shape(1)))]
    out = [n for n in a if n not in shared] + [n for n in b if n not in shared]
    mine, other, name = (a, b, "b") if site.k == 0 else (b, a, "a")
    subscripts = f"{''.join(out)},{''.join(other)}->{''.join(mine)}"
    return f'np.einsum("{subscripts}", g, {name})'


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
    full = tuple(sizes.get(n, 1) for n in mine)
    return f"{text}{reduction_text(full, site.shape(site.k))}"


def _einsum_labels(site: Site) -> tuple[list[str], str] | None:
    """Return the letters of each operand and of the output, with "..." spelled out."""
    subscripts = site.option("subscripts").replace(" ", "")
    left, arrow, out = subscripts.partition("->")
    terms = left.split(",")
    free = [n for n in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if n not in subscripts]
    depths = [
        len(site.shape(j)) - len(term.replace("...", "")) for j, term in enumerate(terms) if "..." in term
    ]
    deepest = max(depths, default=0)
    if deepest > len(free):
        return None
    dots = "".join(free[:deepest])
    if not arrow:
        plain = "".join(terms).replace("...", "")
        out = ("..." if depths else "") + "".join(sorted(n for n in set(plain) if plain.count(n) == 1))
    spelled = []
    for j, term in enumerate(terms):
        depth = len(site.shape(j)) - len(term.replace("...", ""))
        spelled.append(term.replace("...", dots[deepest - depth :] if depth else ""))
    if depths and "..." not in out:
        return None
    return spelled, out.replace("...", dots)


@entry("kron")
def _kron(site: Site) -> str | None:
    if len(site.shape(0)) == len(site.shape(1)) == 1:
        blocks = "g.reshape(a.size, b.size)"
        return f"{blocks} @ b" if site.k == 0 else f"a @ {blocks}"
    if not len(site.shape(0)) == len(site.shape(1)) == 2:
        return None
    blocks = "g.reshape(a.shape[0], b.shape[0], a.shape[1], b.shape[1])"
    if site.k == 0:
        return f'np.einsum("ikjl,kl->ij", {blocks}, b)'
    return f'np.einsum("ikjl,ij->kl", {blocks}, a)'


# ---------------------------------------------------------------------- linear algebra


@entry("solve")
def _solve(site: Site) -> str:
    a, b = len(site.shape(0)), len(site.shape(1))
    if a > 2 and b == 1:
        flipped = "np.linalg.solve(a.swapaxes(-1, -2), g[..., None])[..., 0]"
        if site.k == 0:
            return f"d = {flipped}\n-d[..., :, None] * out[..., None, :]"
        return f"{flipped}{reduction_text(np.shape(site.out), site.shape(1))}"
    solved = f"np.linalg.solve({_transposed('a', a)}, g)"
    if site.k == 1:
        return f"{solved}{reduction_text(np.shape(site.out), site.shape(1))}"
    if b == 1:
        return f"-np.outer({solved}, out)"
    out = np.ndim(site.out)
    full = (*np.shape(site.out)[:-2], *site.shape(0)[-2:])
    text = f"-{solved} @ {_transposed('out', out)}"
    summed = reduction_text(full, site.shape(0))
    return f"({text}){summed}" if summed else text


@entry("inv")
def _inv(site: Site) -> str:
    flipped = _transposed("out", np.ndim(site.out))
    return f"-{flipped} @ g @ {flipped}"


@entry("det")
def _det(site: Site) -> str:
    flipped = f"np.linalg.inv({_transposed('a', len(site.shape(0)))})"
    return f"g * out * {flipped}" if len(site.shape(0)) == 2 else f"(g * out)[..., None, None] * {flipped}"


@entry("logabsdet")
def _logabsdet(site: Site) -> str:
    flipped = f"np.linalg.inv({_transposed('a', len(site.shape(0)))})"
    return f"g * {flipped}" if len(site.shape(0)) == 2 else f"g[..., None, None] * {flipped}"


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

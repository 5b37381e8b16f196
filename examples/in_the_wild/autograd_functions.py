"""HIPS autograd's own backward functions, checked as they are published: it has one for each NumPy function.

They were written by hand too. `autograd.make_vjp` runs one; NumPy or SciPy itself is the forward.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import autograd
import autograd.numpy as anp
import autograd.scipy.linalg as linalg
import autograd.scipy.signal as signal
import autograd.scipy.special as special
import autograd.scipy.stats as stats
import numpy as np

from handgrad.checking import CheckError, Report, check

Case = tuple[Callable[..., Any], tuple[np.ndarray, ...]]


def check_function(function: Callable[..., Any], *inputs: np.ndarray) -> Report:
    """Check the backward that autograd has for a function of arrays."""

    def given(values: tuple[np.ndarray, ...]) -> list[np.ndarray]:
        return [np.array(value) for value in values]

    def backward(upstream: np.ndarray, *values: np.ndarray) -> tuple[np.ndarray, ...]:
        up = np.asarray(upstream) if np.ndim(upstream) else float(upstream)
        return tuple(autograd.make_vjp(function, k)(*given(values))[0](up) for k in range(len(values)))

    return check(
        lambda *values: np.asarray(function(*given(values))),
        backward,
        {f"x{k}": value for k, value in enumerate(inputs)},
    )


def cases() -> dict[str, Case]:
    """Return every function with arrays in its domain."""
    generator = np.random.default_rng(0)
    x, s, stack = (generator.normal(size=shape) for shape in ((3, 4), (3, 3), (2, 3, 4)))
    positive, share = np.abs(generator.normal(size=(3, 4))) + 0.3, generator.uniform(0.1, 0.9, size=(3, 4))
    covariance, vector = s @ s.T + 3 * np.eye(3), generator.normal(size=3)
    bands = np.abs(generator.normal(size=(3, 4))) + np.array([[0], [3], [0]])
    found: dict[str, Case] = {}

    def add(module: Any, names: str, *inputs: np.ndarray) -> None:
        found.update({name: (getattr(module, name), inputs) for name in names.split()})

    def new(name: str, function: Callable[..., Any], *inputs: np.ndarray) -> None:
        found[name] = (function, inputs)

    add(
        anp,
        "exp log log2 log10 log1p expm1 sqrt square reciprocal sinh cosh tanh sin cos tan arctan",
        positive,
    )
    add(
        anp,
        "arcsinh abs sign negative sinc exp2 degrees deg2rad sum mean prod var std max min cumsum",
        positive,
    )
    add(anp, "arcsin arccos arctanh", share)
    add(
        anp,
        "add subtract multiply divide power maximum minimum logaddexp arctan2 fmax mod",
        positive,
        positive[0] + 0.1,
    )
    add(anp, "ravel rot90 nan_to_num", x)
    add(anp, "inner", x, x + 1)
    add(anp, "dot matmul", x, x.T + 1)
    add(anp, "kron", x, s)
    add(anp, "outer", x[0], x[1])
    add(anp, "trace diag triu tril", s)
    add(anp.linalg, "det", s)
    add(anp.linalg, "inv", covariance + s)
    add(anp.linalg, "solve", covariance + s, s)
    add(anp.linalg, "pinv norm", x)
    add(anp.fft, "fftshift", x)
    for name in ("sum", "mean", "prod", "var", "std", "max", "min", "cumsum", "sort"):
        new(f"{name}, axis 0", lambda a, name=name: getattr(anp, name)(a, axis=0), x)
    new("std, ddof 1", lambda a: anp.std(a, axis=1, ddof=1), x)
    new("partition", lambda a: anp.partition(a, 2), x[0])
    new("matmul, stacked", anp.matmul, stack, x[0:2].T)
    new("tensordot", lambda a, b: anp.tensordot(a, b, axes=([0], [0])), x, s)
    new("einsum", lambda a, b: anp.einsum("...ij,jk->...ik", a, b), stack, x[0:2].T)
    new("cross", anp.cross, s, s + 1)
    new("diff", lambda a: anp.diff(a, n=2), x)
    new("gradient", lambda a: anp.gradient(a, axis=1), x)
    new("roll", lambda a: anp.roll(a, 1, axis=1), x)
    new("tile", lambda a: anp.tile(a, (2, 3)), x)
    new("repeat", lambda a: anp.repeat(a, 3, axis=0), x)
    new("pad", lambda a: anp.pad(a, ((1, 2), (0, 1)), "constant"), x)
    new("where", lambda a, b: anp.where(x > 0, a, b), x, x + 1)
    new("clip", lambda a: anp.clip(a, -0.5, 0.5), x)
    new("concatenate", lambda a, b: anp.concatenate([a, b], axis=1), x, s)
    new("stack", lambda a, b: anp.stack([a, b], axis=1), x, x + 1)
    new("rows, one twice", lambda a: a[[0, 0, 2]], x)
    new("slogdet", lambda a: anp.linalg.slogdet(a)[1], s)
    new("norm, axis 1", lambda a: anp.linalg.norm(a, axis=1), x)
    new("norm, order 3", lambda a: anp.linalg.norm(a, 3, axis=1), x)
    new("norm, nuclear", lambda a: anp.linalg.norm(a, "nuc"), x)
    new("eigh, values", lambda a: anp.linalg.eigh((a + a.T) / 2)[0], covariance)
    new("svd, values", lambda a: anp.linalg.svd(a, full_matrices=False)[1], x)
    new("cholesky", lambda a: anp.linalg.cholesky((a + a.T) / 2), covariance)
    new("cholesky, lower triangle", anp.linalg.cholesky, covariance)
    new("fft", lambda a: anp.real(anp.fft.fft(a)), x)
    new("rfft", lambda a: anp.imag(anp.fft.rfft(a)), x)
    new("irfft", anp.fft.irfft, x)
    new("fft2", lambda a: anp.real(anp.fft.fft2(a)), x)
    add(special, "gammaln gamma psi erf erfc expit j0 j1 y0 i0 i1", positive)
    add(special, "logit erfinv erfcinv", share)
    add(special, "beta betaln", positive, positive + 0.2)
    new("logsumexp", lambda a: special.logsumexp(a, axis=1), x)
    for name in ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"):
        new(f"norm.{name}", getattr(stats.norm, name), x, x[0] + 0.3, positive)
    for name in ("pdf", "logpdf"):
        new(f"t.{name}", getattr(stats.t, name), x, positive + 2, x[0], positive)
        new(f"gamma.{name}", getattr(stats.gamma, name), positive, positive + 0.5)
        new(f"beta.{name}", getattr(stats.beta, name), share, positive + 0.2, positive + 0.4)
    new("poisson.logpmf", lambda a: stats.poisson.logpmf(np.arange(4), a), positive)
    new("dirichlet.logpdf", lambda a: stats.dirichlet.logpdf(np.array([0.2, 0.3, 0.5]), a), positive[0, :3])
    new("multivariate_normal.logpdf",
        lambda a, m, c: stats.multivariate_normal.logpdf(a, m, (c + c.T) / 2), s[:2], vector, covariance)  # fmt: skip
    add(linalg, "sqrtm", covariance)
    add(linalg, "solve_sylvester", covariance, covariance + 1, s)
    new(
        "solve_triangular",
        lambda a, b: linalg.solve_triangular(a, b, lower=True),
        np.tril(s) + 2 * np.eye(3),
        s,
    )
    new("solve_banded, a vector", lambda a, b: linalg.solve_banded((1, 1), a, b), bands, x[0])
    new("solve_banded, a matrix", lambda a, b: linalg.solve_banded((1, 1), a, b), bands, x[:2].T)
    new("convolve", lambda a, b: signal.convolve(a, b, mode="valid"), x, s[:2, :2])
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"autograd {version('autograd')}, numpy {np.__version__}\n")
    right, others = 0, {}
    for name, (function, inputs) in cases().items():
        try:
            report = check_function(function, *inputs)
        except CheckError as error:
            print(f"{name} raises: {error.problem}")
            continue
        right += report.verdict == "right"
        if report.verdict != "right":
            others[name] = report
    print(f"{right} functions are right\n")
    print(f"{'others':30}{'verdict':13}finding")
    for name, report in others.items():
        found = ", ".join(f"{finding.code}: d{finding.argument}" for finding in report.findings)
        print(f"{name:30}{report.verdict:13}{found}".rstrip())
    for name, report in others.items():
        print(f"\n--- {name}\n{report}")


if __name__ == "__main__":
    sys.exit(main())

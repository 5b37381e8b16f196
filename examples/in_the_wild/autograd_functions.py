"""HIPS autograd's own backward functions, checked as they are published: it has one for each NumPy function.

They were written by hand too. `autograd.make_vjp` runs one; NumPy or SciPy itself is the forward.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Case:
    """A function with arrays in its domain."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Arrays:
    """What the functions are called with: of any sign, positive, between 0 and 1, and matrices of several kinds."""

    x: np.ndarray
    square: np.ndarray
    stack: np.ndarray
    positive: np.ndarray
    share: np.ndarray
    vector: np.ndarray
    bands: np.ndarray

    @classmethod
    def draw(cls) -> Arrays:
        """Draw them, always the same."""
        generator = np.random.default_rng(0)
        x, square, stack = (generator.normal(size=shape) for shape in ((3, 4), (3, 3), (2, 3, 4)))
        positive, share = (
            np.abs(generator.normal(size=(3, 4))) + 0.3,
            generator.uniform(0.1, 0.9, size=(3, 4)),
        )
        vector = generator.normal(size=3)
        bands = np.abs(generator.normal(size=(3, 4))) + np.array([[0], [3], [0]])
        return cls(x, square, stack, positive, share, vector, bands)

    @property
    def covariance(self) -> np.ndarray:
        """A symmetric, positive definite matrix."""
        return self.square @ self.square.T + 3 * np.eye(3)


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


def named(module: Any, names: str, *inputs: np.ndarray) -> Iterator[Case]:
    """Yield functions of a module by their names, all with the same inputs."""
    return (Case(name, getattr(module, name), inputs) for name in names.split())


def along(axis_0: str, x: np.ndarray) -> Iterator[Case]:
    """Yield functions of NumPy along the first axis."""
    for name in axis_0.split():
        yield Case(f"{name}, axis 0", lambda a, name=name: getattr(anp, name)(a, axis=0), (x,))


def elementwise(of: Arrays) -> Iterator[Case]:
    """Yield what works entry by entry, or adds up entries."""
    positive = of.positive
    unary = "exp log log2 log10 log1p expm1 sqrt square reciprocal sinh cosh tanh sin cos tan arctan arcsinh"
    unary += " abs sign negative sinc exp2 degrees deg2rad sum mean prod var std max min cumsum"
    yield from named(anp, unary, positive)
    yield from named(anp, "arcsin arccos arctanh", of.share)
    binary = "add subtract multiply divide power maximum minimum logaddexp arctan2 fmax mod"
    yield from named(anp, binary, positive, positive[0] + 0.1)
    yield from named(anp, "ravel rot90 nan_to_num", of.x)
    yield Case("where", lambda a, b: anp.where(of.x > 0, a, b), (of.x, of.x + 1))
    yield Case("clip", lambda a: anp.clip(a, -0.5, 0.5), (of.x,))


def axes(of: Arrays) -> Iterator[Case]:
    """Yield what moves entries, or adds them up along an axis."""
    x = of.x
    yield from along("sum mean prod var std max min cumsum sort", x)
    yield Case("std, ddof 1", lambda a: anp.std(a, axis=1, ddof=1), (x,))
    yield Case("partition", lambda a: anp.partition(a, 2), (x[0],))
    yield Case("diff", lambda a: anp.diff(a, n=2), (x,))
    yield Case("gradient", lambda a: anp.gradient(a, axis=1), (x,))
    yield Case("roll", lambda a: anp.roll(a, 1, axis=1), (x,))
    yield Case("tile", lambda a: anp.tile(a, (2, 3)), (x,))
    yield Case("repeat", lambda a: anp.repeat(a, 3, axis=0), (x,))
    yield Case("pad", lambda a: anp.pad(a, ((1, 2), (0, 1)), "constant"), (x,))
    yield Case("concatenate", lambda a, b: anp.concatenate([a, b], axis=1), (x, of.square))
    yield Case("stack", lambda a, b: anp.stack([a, b], axis=1), (x, x + 1))
    yield Case("rows, one twice", lambda a: a[[0, 0, 2]], (x,))


def products(of: Arrays) -> Iterator[Case]:
    """Yield products of vectors, matrices and stacks of them."""
    x, square = of.x, of.square
    yield from named(anp, "inner", x, x + 1)
    yield from named(anp, "dot matmul", x, x.T + 1)
    yield from named(anp, "kron", x, square)
    yield from named(anp, "outer", x[0], x[1])
    yield Case("matmul, stacked", anp.matmul, (of.stack, x[0:2].T))
    yield Case("tensordot", lambda a, b: anp.tensordot(a, b, axes=([0], [0])), (x, square))
    yield Case("einsum", lambda a, b: anp.einsum("...ij,jk->...ik", a, b), (of.stack, x[0:2].T))
    yield Case("cross", anp.cross, (square, square + 1))


def linear_algebra(of: Arrays) -> Iterator[Case]:
    """Yield NumPy's linear algebra."""
    x, square, covariance = of.x, of.square, of.covariance
    yield from named(anp, "trace diag triu tril", square)
    yield from named(anp.linalg, "det", square)
    yield from named(anp.linalg, "inv", covariance + square)
    yield from named(anp.linalg, "solve", covariance + square, square)
    yield from named(anp.linalg, "pinv norm", x)
    yield Case("slogdet", lambda a: anp.linalg.slogdet(a)[1], (square,))
    yield Case("norm, axis 1", lambda a: anp.linalg.norm(a, axis=1), (x,))
    yield Case("norm, order 3", lambda a: anp.linalg.norm(a, 3, axis=1), (x,))
    yield Case("norm, nuclear", lambda a: anp.linalg.norm(a, "nuc"), (x,))
    yield Case("eigh, values", lambda a: anp.linalg.eigh((a + a.T) / 2)[0], (covariance,))
    yield Case("svd, values", lambda a: anp.linalg.svd(a, full_matrices=False)[1], (x,))
    yield Case("cholesky", lambda a: anp.linalg.cholesky((a + a.T) / 2), (covariance,))
    yield Case("cholesky, lower triangle", anp.linalg.cholesky, (covariance,))


def transforms(of: Arrays) -> Iterator[Case]:
    """Yield Fourier transforms and a convolution."""
    yield from named(anp.fft, "fftshift", of.x)
    yield Case("fft", lambda a: anp.real(anp.fft.fft(a)), (of.x,))
    yield Case("rfft", lambda a: anp.imag(anp.fft.rfft(a)), (of.x,))
    yield Case("irfft", anp.fft.irfft, (of.x,))
    yield Case("fft2", lambda a: anp.real(anp.fft.fft2(a)), (of.x,))
    yield Case("convolve", lambda a, b: signal.convolve(a, b, mode="valid"), (of.x, of.square[:2, :2]))


def special_functions(of: Arrays) -> Iterator[Case]:
    """Yield SciPy's special functions."""
    yield from named(special, "gammaln gamma psi erf erfc expit j0 j1 y0 i0 i1", of.positive)
    yield from named(special, "logit erfinv erfcinv", of.share)
    yield from named(special, "beta betaln", of.positive, of.positive + 0.2)
    yield Case("logsumexp", lambda a: special.logsumexp(a, axis=1), (of.x,))


def distributions(of: Arrays) -> Iterator[Case]:
    """Yield SciPy's distributions."""
    x, positive, share = of.x, of.positive, of.share
    for name in ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"):
        yield Case(f"norm.{name}", getattr(stats.norm, name), (x, x[0] + 0.3, positive))
    for name in ("pdf", "logpdf"):
        yield Case(f"t.{name}", getattr(stats.t, name), (x, positive + 2, x[0], positive))
        yield Case(f"gamma.{name}", getattr(stats.gamma, name), (positive, positive + 0.5))
        yield Case(f"beta.{name}", getattr(stats.beta, name), (share, positive + 0.2, positive + 0.4))
    yield Case("poisson.logpmf", lambda a: stats.poisson.logpmf(np.arange(4), a), (positive,))
    thirds = np.array([0.2, 0.3, 0.5])
    yield Case("dirichlet.logpdf", lambda a: stats.dirichlet.logpdf(thirds, a), (positive[0, :3],))

    def normal(a: np.ndarray, m: np.ndarray, c: np.ndarray) -> Any:
        return stats.multivariate_normal.logpdf(a, m, (c + c.T) / 2)

    yield Case("multivariate_normal.logpdf", normal, (of.square[:2], of.vector, of.covariance))


def solvers(of: Arrays) -> Iterator[Case]:
    """Yield SciPy's linear algebra."""
    square, covariance = of.square, of.covariance
    yield from named(linalg, "sqrtm", covariance)
    yield from named(linalg, "solve_sylvester", covariance, covariance + 1, square)
    triangle = np.tril(square) + 2 * np.eye(3)
    yield Case("solve_triangular", lambda a, b: linalg.solve_triangular(a, b, lower=True), (triangle, square))
    for shape, b in (("a vector", of.x[0]), ("a matrix", of.x[:2].T)):
        yield Case(f"solve_banded, {shape}", lambda a, b: linalg.solve_banded((1, 1), a, b), (of.bands, b))


FAMILIES = (
    elementwise, axes, products, linear_algebra, transforms, special_functions, distributions, solvers
)  # fmt: skip


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"autograd {version('autograd')}, numpy {np.__version__}\n")
    right, others = 0, {}
    arrays = Arrays.draw()
    for case in (case for family in FAMILIES for case in family(arrays)):
        try:
            report = check_function(case.function, *case.inputs)
        except CheckError as error:
            print(f"{case.name} raises: {error.problem}")
            continue
        right += report.verdict == "right"
        if report.verdict != "right":
            others[case.name] = report
    print(f"{right} functions are right\n")
    print(f"{'others':30}{'verdict':13}finding")
    for name, report in others.items():
        found = ", ".join(f"{finding.code}: d{finding.argument}" for finding in report.findings)
        print(f"{name:30}{report.verdict:13}{found}".rstrip())
    for name, report in others.items():
        print(f"\n--- {name}\n{report}")


if __name__ == "__main__":
    sys.exit(main())

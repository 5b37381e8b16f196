"""Other hand-written gradients of scikit-learn, checked as they are published: losses, kernels, likelihoods.

`mlp_regressor.py` has the networks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import sklearn
from sklearn._loss import loss as losses
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor, kernels
from sklearn.linear_model._linear_loss import LinearModelLoss
from sklearn.manifold import _t_sne
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from handgrad.checking import Report, check

ROWS, FEATURES, CLASSES = 7, 4, 3
LABELS = np.array([0, 1, 2, 0, 1, 2, 1])
Array = np.ndarray
Case = Callable[[np.random.Generator], Report]


def scalar(both: Callable[[Array], tuple[float, Array]], start: Array) -> Report:
    """Check a function that returns a number and its gradient."""
    return check(
        lambda x: np.asarray(both(np.array(x, float))[0]),
        lambda upstream, x: {"x": upstream * both(np.array(x, float))[1].reshape(x.shape)},
        {"x": start},
    )


def targets(kind: losses.BaseLoss, generator: np.random.Generator) -> Array:
    """Return targets that a loss allows."""
    if kind.is_multiclass:
        return LABELS.astype(float)
    if isinstance(kind, losses.HalfBinomialLoss | losses.ExponentialLoss):
        return (LABELS > 0).astype(float)
    return generator.uniform(0.5, 2, size=ROWS)


def loss(kind: losses.BaseLoss) -> Case:
    """Return a check of a loss row by row, with respect to the raw prediction."""

    def case(generator: np.random.Generator) -> Report:
        t = targets(kind, generator)
        raw = generator.normal(size=(ROWS, CLASSES) if kind.is_multiclass else ROWS)
        if isinstance(kind, losses.HalfTweedieLossIdentity):
            raw = np.exp(raw)  # it is defined for positive predictions

        def backward(upstream: Array, raw: Array) -> dict[str, Array]:
            slopes = kind.gradient(t, np.ascontiguousarray(raw, float))
            return {"raw": (upstream[:, None] if kind.is_multiclass else upstream) * slopes}

        return check(lambda raw: kind.loss(t, np.ascontiguousarray(raw, float)), backward, {"raw": raw})

    return case


def linear_model(kind: losses.BaseLoss) -> Case:
    """Return a check of a linear model's loss, with its penalty, with respect to the coefficients."""

    def case(generator: np.random.Generator) -> Report:
        model, t = LinearModelLoss(kind, fit_intercept=True), targets(kind, generator)
        x = generator.normal(size=(ROWS, FEATURES))
        shape = (CLASSES, FEATURES + 1) if kind.is_multiclass else (FEATURES + 1,)
        return scalar(
            lambda coef: model.loss_gradient(coef, x, t, l2_reg_strength=0.3), generator.normal(size=shape)
        )

    return case


def kernel(kind: kernels.Kernel) -> Case:
    """Return a check of a kernel, with respect to the logarithms of its parameters."""

    def case(generator: np.random.Generator) -> Report:
        x = generator.normal(size=(ROWS, FEATURES))

        def backward(upstream: Array, theta: Array) -> dict[str, Array]:
            _, slopes = kind.clone_with_theta(theta)(x, eval_gradient=True)
            return {"theta": np.einsum("ij,ijk->k", upstream, slopes)}

        return check(lambda theta: kind.clone_with_theta(theta)(x), backward, {"theta": kind.theta})

    return case


def process(kind: type, covariance: kernels.Kernel) -> Case:
    """Return a check of a Gaussian process's marginal likelihood."""

    def case(generator: np.random.Generator) -> Report:
        x = generator.normal(size=(ROWS, FEATURES))
        t = LABELS > 0 if kind is GaussianProcessClassifier else generator.normal(size=ROWS)
        model = kind(covariance, optimizer=None).fit(x, t)
        return scalar(
            lambda theta: model.log_marginal_likelihood(theta, eval_gradient=True), model.kernel_.theta
        )

    return case


def neighbours(generator: np.random.Generator) -> Report:
    """Check neighbourhood components analysis."""
    x = generator.normal(size=(ROWS, FEATURES))
    model = NeighborhoodComponentsAnalysis(2, max_iter=1).fit(x, LABELS)
    same = LABELS[:, None] == LABELS
    return scalar(
        lambda a: model._loss_grad_lbfgs(a.ravel(), x, same, -1.0), generator.normal(size=(2, FEATURES))
    )


def t_sne(generator: np.random.Generator) -> Report:
    """Check the divergence that t-SNE makes small."""
    p = generator.uniform(size=ROWS * (ROWS - 1) // 2)
    p /= 2 * p.sum()
    return scalar(lambda y: _t_sne._kl_divergence(y.ravel(), p, 1, ROWS, 2), generator.normal(size=(ROWS, 2)))


LOSSES = (
    losses.HalfSquaredError(), losses.AbsoluteError(), losses.PinballLoss(quantile=0.3), losses.HuberLoss(delta=0.8),
    losses.HalfPoissonLoss(), losses.HalfGammaLoss(), losses.HalfTweedieLoss(power=1.5),
    losses.HalfTweedieLossIdentity(power=1.5), losses.HalfBinomialLoss(), losses.HalfMultinomialLoss(n_classes=CLASSES),
    losses.ExponentialLoss(),
)  # fmt: skip
KERNELS = {
    "RBF": kernels.RBF([1.0, 2.0, 0.5, 1.5]),
    "Matern, nu 0.5": kernels.Matern(1.2, nu=0.5),
    "Matern, nu 1.5": kernels.Matern(1.2, nu=1.5),
    "Matern, nu 2.5": kernels.Matern([1.2, 1.0, 2.0, 3.0], nu=2.5),
    "Matern, nu 0.8": kernels.Matern(1.2, nu=0.8),
    "RationalQuadratic": kernels.RationalQuadratic(1.2, 0.7),
    "ExpSineSquared": kernels.ExpSineSquared(1.2, 2.7),
    "DotProduct": kernels.DotProduct(0.7),
    "WhiteKernel": kernels.WhiteKernel(0.7),
    "PairwiseKernel, laplacian": kernels.PairwiseKernel(metric="laplacian"),
    "PairwiseKernel, rbf": kernels.PairwiseKernel(metric="rbf"),
    "sum": kernels.RBF(1.1) + kernels.DotProduct(0.4),
    "product": kernels.RBF(1.1) * kernels.ConstantKernel(0.4),
    "Exponentiation": kernels.Exponentiation(kernels.RationalQuadratic(), 2),
}
CASES: dict[str, Case] = {
    **{type(kind).__name__: loss(kind) for kind in LOSSES},
    "linear model, squared": linear_model(losses.HalfSquaredError()),
    "linear model, binomial": linear_model(losses.HalfBinomialLoss()),
    "linear model, multinomial": linear_model(losses.HalfMultinomialLoss(n_classes=CLASSES)),
    **{f"kernel {name}": kernel(kind) for name, kind in KERNELS.items()},
    "GaussianProcessRegressor": process(
        GaussianProcessRegressor, kernels.RBF(1.3) * kernels.ConstantKernel(1.5) + kernels.WhiteKernel(0.3)
    ),
    "GaussianProcessClassifier": process(
        GaussianProcessClassifier, kernels.RBF(1.3) * kernels.ConstantKernel(1.5)
    ),
    "NeighborhoodComponentsAnalysis": neighbours,
    "TSNE": t_sne,
}


def main() -> None:
    print(f"scikit-learn {sklearn.__version__}, numpy {np.__version__}\n")
    print(f"{'':34}{'verdict':13}{'worst entry':14}finding")
    reports = {name: case(np.random.default_rng(0)) for name, case in CASES.items()}
    for name, report in reports.items():
        found = ", ".join(f"{finding.code}: d{finding.argument}" for finding in report.findings)
        worst = max(result.relative_error for result in report.arguments)
        print(f"{name:34}{report.verdict:13}{worst:<14.0e}{found}".rstrip())
    for name, report in reports.items():
        if report.verdict != "right":
            print(f"\n--- {name}\n{report}")


if __name__ == "__main__":
    sys.exit(main())

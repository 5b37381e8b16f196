"""scikit-learn's multi-layer perceptrons: the gradient they minimise with, against the loss they return.

With `solver="lbfgs"`, SciPy minimises `_loss_grad_lbfgs`, which takes all parameters in one vector and returns the
loss and its gradient. That function is called here as the estimator calls it; nothing of it is changed.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor

from handgrad.checking import Report, check

ROWS, FEATURES, HIDDEN = 7, 4, 5
Array = np.ndarray


def check_mlp(model: MLPRegressor | MLPClassifier, x: Array, t: Array) -> Report:
    """Check the gradient of a network's loss with respect to every weight and bias."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(solver="lbfgs", max_iter=1).fit(x, t)  # so that it knows its sizes
    if isinstance(model, MLPClassifier):
        t = model._label_binarizer.transform(t)
    t = t.reshape(len(x), -1)
    layers = range(model.n_layers_ - 1)
    generator = np.random.default_rng(1)
    inputs = {f"W{k + 1}": generator.normal(size=model.coefs_[k].shape) for k in layers}
    inputs |= {f"b{k + 1}": generator.normal(size=model.intercepts_[k].shape) for k in layers}

    def loss_and_gradient(parameters: dict[str, Array]) -> tuple[float, Array]:
        packed = np.concatenate([parameters[name].ravel() for name in inputs])
        room = [[x] + [None for _ in layers], [None for _ in layers]]  # activations and deltas
        room += [[np.empty_like(inputs[f"{kind}{k + 1}"]) for k in layers] for kind in "Wb"]
        return model._loss_grad_lbfgs(packed, x, t, None, *room)

    def forward(**parameters: Array) -> Array:
        return np.asarray(loss_and_gradient(parameters)[0])

    def backward(upstream: Array, **parameters: Array) -> dict[str, Array]:
        packed, gradients = upstream * loss_and_gradient(parameters)[1], {}
        for name, value in parameters.items():
            gradients[name], packed = packed[: value.size].reshape(value.shape), packed[value.size :]
        return gradients

    return check(forward, backward, inputs)


def main() -> None:
    generator = np.random.default_rng(0)
    x, t = generator.normal(size=(ROWS, FEATURES)), generator.normal(size=(ROWS, 3))
    classes = np.array([0, 1, 2, 0, 1, 2, 1])
    print(f"scikit-learn {sklearn.__version__}, numpy {np.__version__}\n")
    common = {"hidden_layer_sizes": (HIDDEN,), "activation": "tanh", "alpha": 0, "random_state": 0}
    cases = {
        "MLPRegressor, 3 outputs": (MLPRegressor(**common), t),
        "MLPRegressor, 2 outputs": (MLPRegressor(**common), t[:, :2]),
        "MLPRegressor, 1 output": (MLPRegressor(**common), t[:, 0]),
        "MLPRegressor, 3 outputs, Poisson": (MLPRegressor(**common, loss="poisson"), np.abs(t)),
        "MLPClassifier, 3 classes": (MLPClassifier(**common), classes),
        "MLPClassifier, 2 classes": (MLPClassifier(**common), classes > 0),
        "MLPClassifier, 3 labels": (MLPClassifier(**common), (t > 0).astype(int)),
        "MLPClassifier, 3 classes, alpha = 1": (MLPClassifier(**{**common, "alpha": 1}), classes),
    }
    print(f"{'':38}{'verdict':10}{'got / expected':17}finding")
    reports = {name: check_mlp(model, x, target) for name, (model, target) in cases.items()}
    for name, report in reports.items():
        ratio = f"{report.findings[0].got / report.findings[0].expected:.6f}" if report.findings else ""
        found = ", ".join(f"{finding.code}: d{finding.argument}" for finding in report.findings)
        print(f"{name:38}{report.verdict:10}{ratio:17}{found}".rstrip())
    name = next(iter(reports))
    print(f"\n--- {name}\n{reports[name]}")


if __name__ == "__main__":
    sys.exit(main())

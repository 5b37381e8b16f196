"""Two of scikit-learn's own examples of its perceptron, with both packages: only the import line differs.

The first compares strategies of descent on four small sets of rows (plot_mlp_training_curves), the second the sizes of
alpha (plot_mlp_alpha). Needs scikit-learn. It ends with 1 when a score is off by more than 0.03.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import sklearn.neural_network
from sklearn.datasets import load_digits, load_iris, make_circles, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import handgrad.sklearn

SGD = {"solver": "sgd", "learning_rate_init": 0.2}
STRATEGIES: dict[str, dict[str, Any]] = {
    "constant rate": SGD | {"momentum": 0},
    "with momentum": SGD | {"nesterovs_momentum": False},
    "with Nesterov's": SGD | {"nesterovs_momentum": True},
    "inv-scaling": SGD | {"learning_rate": "invscaling", "momentum": 0},
    "inv-scaling, momentum": SGD | {"learning_rate": "invscaling", "nesterovs_momentum": False},
    "adam": {"solver": "adam", "learning_rate_init": 0.01},
}
ROWS = {
    "iris": (load_iris(return_X_y=True), 400),
    "digits": (load_digits(return_X_y=True), 15),
    "circles": (make_circles(noise=0.2, factor=0.5, random_state=1), 400),
    "moons": (make_moons(noise=0.3, random_state=0), 400),
}


def compare(
    label: str, X: Any, y: Any, X_test: Any, y_test: Any, parameters: dict[str, Any], scaler: Any
) -> float:
    """Fit both, print scores and seconds, and return by how much ours is lower."""
    scores, seconds = [], []
    for package in (handgrad.sklearn, sklearn.neural_network):
        model = make_pipeline(scaler, package.MLPClassifier(**parameters))
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        seconds.append(time.perf_counter() - started)
        scores.append(model.score(X_test, y_test))
    print(f"{label:34} score {scores[0]:.4f} | {scores[1]:.4f}   seconds {seconds[0]:.3f} | {seconds[1]:.3f}")
    return float(scores[1] - scores[0])


def main() -> int:
    print(f"{'':34}       handgrad | scikit-learn")
    lower = [
        compare(
            f"{name}, {strategy}",
            X,
            y,
            X,
            y,
            parameters | {"random_state": 0, "max_iter": most},
            MinMaxScaler(),
        )
        for name, ((X, y), most) in ROWS.items()
        for strategy, parameters in STRATEGIES.items()
    ]
    linear = make_classification(n_features=2, n_redundant=0, random_state=0, n_clusters_per_class=1)
    for name, (X, y) in {"circles": ROWS["circles"][0], "moons": ROWS["moons"][0], "linear": linear}.items():
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=42)
        for alpha in (0.1, 1, 10):
            parameters = {"solver": "lbfgs", "alpha": alpha, "random_state": 1, "max_iter": 2000,
                          "early_stopping": True, "hidden_layer_sizes": [10, 10]}  # fmt: skip
            lower.append(
                compare(f"{name}, alpha {alpha}", X, y, X_test, y_test, parameters, StandardScaler())
            )
    return int(max(lower) > 0.03)


if __name__ == "__main__":
    sys.exit(main())

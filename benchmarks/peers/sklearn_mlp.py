"""scikit-learn's MLPClassifier. Two classes are one logistic output there, as always."""

# ruff: noqa: D102 - methods are described in `peers.Peer`

from __future__ import annotations

import numpy as np
from sklearn import __version__
from sklearn.neural_network import MLPClassifier

from peers.workload import Array, UnavailableError, Workload


class ScikitLearn:
    """`partial_fit`: one epoch over rows that it shuffles."""

    def __init__(self, workload: Workload) -> None:
        if workload.dropout or workload.batch_norm:
            raise UnavailableError("has no dropout and no batch norm")
        self.facts = {"version": __version__}
        self.x, self.t = workload.data()
        self.model = MLPClassifier(
            workload.sizes[1:-1], solver=workload.optimiser, learning_rate_init=workload.rate, alpha=0.0,
            momentum=0.0, nesterovs_momentum=False, batch_size=workload.batch, random_state=0,
        )  # fmt: skip
        first = np.arange(workload.batch)
        self.model.partial_fit(self.x[first], self.t[first], classes=np.arange(workload.sizes[-1]))
        del self.model._optimizer  # forgets the step that only made the arrays
        for coef, intercept, W in zip(
            self.model.coefs_, self.model.intercepts_, workload.weights(), strict=True
        ):
            coef[...] = W if coef.shape == W.shape else W[:, 1:] - W[:, :1]
            intercept[...] = 0

    def epoch(self) -> None:
        self.model.partial_fit(self.x, self.t)

    def scores(self, x: Array) -> Array | None:
        return self.model.predict_log_proba(x)

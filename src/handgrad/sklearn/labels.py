"""Classes as a network's targets, and a network's answers as classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target, unique_labels

from handgrad.sklearn.errors import EstimatorError

Array = NDArray[Any]
Kind = Literal["binary", "multiclass", "multilabel-indicator"]


@dataclass(frozen=True)
class Labels:
    """What y may be.

    Attributes
    ----------
    kind
        scikit-learn's word for it.
    classes
        In rising order; of several labels a row, their numbers.

    Examples
    --------
    >>> labels = Labels.of(np.array(["yes", "no", "yes"]))
    >>> labels.encode(np.array(["no", "yes"])).tolist()
    [[0.0], [1.0]]
    >>> labels.decode(np.array([[0.2], [0.8]])).tolist()
    ['no', 'yes']
    """

    kind: Kind
    classes: Array

    @classmethod
    def of(cls, y: Any) -> Self:
        """Find the labels that are there."""
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind == "multiclass-multioutput":
            raise EstimatorError(
                "Multioutput target data is not supported: y has several columns of several classes",
                fix="fit one classifier a column: sklearn.multioutput.MultiOutputClassifier",
            )
        return cls(kind, unique_labels(y))

    @property
    def outputs(self) -> int:
        """How many outputs a network needs."""
        return 1 if self.kind == "binary" else len(self.classes)

    def encode(self, y: Any) -> Array:
        """Return y as a loss takes it: class numbers (n,), or 0 and 1, (n, outputs)."""
        if self.kind == "multiclass":
            return np.searchsorted(self.classes, y)
        if self.kind == "binary":
            return np.asarray(y == self.classes[-1], float)[:, None] * (len(self.classes) > 1)
        dense = y.toarray() if scipy.sparse.issparse(y) else y
        if dense.shape[1:] != self.classes.shape:
            raise EstimatorError(f"y has the shape {dense.shape}, and there are {self.outputs} labels")
        return np.ascontiguousarray(dense > 0, float)

    def decode(self, answers: Array) -> Array:
        """Return the classes of a network's answers."""
        if self.kind == "multiclass":
            return self.classes[answers.argmax(axis=1)]
        if self.kind == "binary":
            return self.classes[(answers[:, 0] > 0.5).astype(int) * (len(self.classes) - 1)]
        return (answers > 0.5).astype(int)

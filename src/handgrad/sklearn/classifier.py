"""The classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import (
    _check_partial_fit_first_call,
    check_classification_targets,
    type_of_target,
    unique_labels,
)

from handgrad.arrays import Array
from handgrad.errors import EstimatorError
from handgrad.layers import BinaryCrossEntropy, Loss, SoftmaxCrossEntropy
from handgrad.sklearn.estimator import (
    ACTIVATION,
    FRACTION,
    HIDDEN_LAYER_SIZES,
    Perceptron,
    completed,
    parameter,
)

LabelKind = Literal["binary", "multiclass", "multilabel-indicator"]  # in the words of scikit-learn


@completed
@dataclass(eq=False, repr=False)
class MLPClassifier(ClassifierMixin, Perceptron):
    """A multi-layer perceptron for classes, in place of ``sklearn.neural_network.MLPClassifier``.

    y may have two classes, several, or several labels a row. It computes in the type of X, float32 or float64.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    ``classes_``
        The classes, in the order of `predict_proba`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = MLPClassifier(max_iter=1000, random_state=0).fit(X, y)
    >>> classifier.score(X, y) > 0.95
    True
    """

    hidden_layer_sizes: ArrayLike = HIDDEN_LAYER_SIZES
    activation: str = ACTIVATION
    _: KW_ONLY
    label_smoothing: float = parameter(
        0.0, "The fraction of each row's target that is spread evenly over all classes.", FRACTION
    )
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = parameter(
        None, 'Weights of the classes\' rows: a dictionary, or "balanced".', dict, StrOptions({"balanced"}), None,
    )  # fmt: skip

    _numeric: ClassVar[bool] = False

    @available_if(lambda estimator: estimator.solver != "lbfgs")
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Learn from these rows once, resuming where the last call ended.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes
            All classes there will be, needed in the first call; y need not have all of them.
        """
        if self.class_weight == "balanced":
            raise EstimatorError(
                "class_weight='balanced' is not known to partial_fit, which sees a part of y",
                fix="give the weights as a dictionary",
            )
        if _check_partial_fit_first_call(self, classes):
            several = type_of_target(y).startswith("multilabel")
            self._learn_classes(y if several else np.asarray(classes))
        return self._fit(X, y, sample_weight, incremental=True)

    def predict(self, X: ArrayLike) -> Array:
        """Return the class of each row of X, (n,); with several labels whether each is there, (n, labels)."""
        outputs = self._outputs(X)
        if self._kind == "multiclass":
            return self.classes_[outputs.argmax(axis=1)]
        found = (outputs > 0.5).astype(int)
        return found if self._kind != "binary" else self.classes_[found[:, 0] * (len(self.classes_) - 1)]

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class for each row of X, (n, classes), in the order of ``classes_``."""
        outputs = self._outputs(X)
        return np.hstack([1 - outputs, outputs]) if self.n_outputs_ == 1 else outputs

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _learn_classes(self, y: Any) -> None:
        check_classification_targets(y)
        kind: Any = type_of_target(y, input_name="y", raise_unknown=True)
        if kind == "multiclass-multioutput":
            raise EstimatorError(
                "Multioutput target data is not supported: y has several columns of several classes",
                fix="fit one classifier a column: sklearn.multioutput.MultiOutputClassifier",
            )
        self._kind, self.classes_ = kind, unique_labels(y)

    def _targets(self, y: Any, *, first: bool, incremental: bool) -> Array:
        """Return class numbers (n,), or for two classes and for several labels 0 and 1, (n, outputs)."""
        if first and not incremental:
            self._learn_classes(y)
        else:
            self._check_classes(y, incremental=incremental)
        if self._kind == "multiclass":
            return np.searchsorted(self.classes_, y)
        if self._kind == "binary":
            return np.asarray(y == self.classes_[-1], float)[:, None] * (len(self.classes_) > 1)
        dense = y.toarray() if scipy.sparse.issparse(y) else y
        if dense.shape[1:] != self.classes_.shape:
            raise EstimatorError(f"y has the shape {dense.shape}, and there are {len(self.classes_)} labels")
        return np.ascontiguousarray(dense > 0, float)

    def _check_classes(self, y: Array, *, incremental: bool) -> None:
        classes = unique_labels(y)
        if incremental and set(classes) <= set(self.classes_):
            return
        if incremental:
            raise EstimatorError(
                f"`y` has classes not in `self.classes_`. `self.classes_` has {self.classes_}. 'y' has {classes}.",
                fix="name all classes in the first call of partial_fit",
            )
        if set(classes) != set(self.classes_):
            raise EstimatorError(
                "warm_start can only be used where `y` has the same classes as in the previous call to fit. "
                f"Previously got {self.classes_}, `y` has {classes}",
                fix="take warm_start=False, or partial_fit",
            )

    def _row_weights(self, y: Array, w: Array | None) -> Array | None:
        if self.class_weight is None:
            return w
        of_class = compute_sample_weight(self.class_weight, y)
        return of_class if w is None else of_class * w

    def _strata(self, y: Array) -> Array | None:
        return y if self._kind == "binary" else None  # as scikit-learn does

    def _loss(self) -> Loss:
        l2, smoothing = float(self.alpha), float(self.label_smoothing)
        if self._kind == "multiclass":
            return SoftmaxCrossEntropy(smoothing=smoothing, l2=l2)
        return BinaryCrossEntropy(outputs="sum", smoothing=smoothing, l2=l2)

    def _score_of(self, outputs: Array, t: Array, w: Array | None) -> float:
        right = outputs.argmax(axis=1) == t if t.ndim == 1 else ((outputs > 0.5) == (t > 0.5)).all(axis=1)
        return float(np.average(right, weights=w))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

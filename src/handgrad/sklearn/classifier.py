"""The classifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _check_partial_fit_first_call, type_of_target, unique_labels
from sklearn.utils.validation import check_is_fitted

from handgrad.layers import BinaryCrossEntropy, Loss, Schedule, SoftmaxCrossEntropy
from handgrad.sklearn.errors import EstimatorError
from handgrad.sklearn.estimator import Perceptron
from handgrad.sklearn.labels import Labels
from handgrad.training.history import EpochRecord

Array = NDArray[Any]


class MLPClassifier(ClassifierMixin, Perceptron):
    """A multi-layer perceptron that tells classes apart, in place of ``sklearn.neural_network.MLPClassifier``.

    y may have two classes, several, or several labels a row. It computes in the type of X, float32 or float64.

    Parameters
    ----------
    hidden_layer_sizes
        How many units each hidden layer has.
    activation
        Of the hidden layers: "identity", "logistic", "tanh", "relu"; and handgrad's other elementwise layers, each
        by the name of its rule: "gelu", "leaky_relu", …
    solver
        "adam", "sgd" or "lbfgs".
    alpha
        How much half the sum of squared weights counts beside a batch's rows.
    batch_size
        Rows of a batch; "auto" is min(200, n).
    learning_rate
        "constant"; for sgd also "invscaling" (learning_rate_init / t^power_t) and "adaptive" (a fifth, whenever
        nothing becomes better); for both "cosine", "one_cycle" or a `Schedule` of handgrad's, over ``max_iter``
        epochs.
    learning_rate_init, power_t
        The learning rate at first, and how it falls with "invscaling".
    max_iter
        The most epochs (with lbfgs: iterations) there are.
    shuffle
        Whether each epoch takes the rows in a new order.
    random_state
        Of the weights, the order of rows, the rows held out, and dropout.
    tol, n_iter_no_change
        The descent ends when for so many epochs nothing became better by ``tol``.
    verbose
        Whether to print each epoch's loss.
    warm_start
        Whether `fit` begins with the weights of the last one.
    momentum, nesterovs_momentum
        Of sgd.
    early_stopping, validation_fraction
        Whether to hold out such a share of the rows, to end when the score on them becomes no better, and to keep
        the weights of the best.
    beta_1, beta_2, epsilon
        Of adam.
    max_fun
        The most looks at the loss that lbfgs takes.
    dropout
        The share of hidden units left out at random in each step.
    normalisation
        "batch" or "layer", before each activation.
    label_smoothing
        How much of each row's share goes to all classes alike.
    class_weight
        How much the rows of each class count: a dictionary, or "balanced".
    after_epoch
        Called with each epoch's record, a `handgrad.training.EpochRecord`; returning True ends the descent.

    Attributes
    ----------
    ``network_``
        The network itself, a `handgrad.Network`: print its program, explain it, save it.
    ``coefs_``, ``intercepts_``
        Its weights and biases, layer by layer; setting them sets the network's.
    ``loss_``, ``loss_curve_``, ``best_loss_``
        The loss of the last epoch, of each, and the least.
    ``validation_scores_``, ``best_validation_score_``
        With early stopping, the score of each epoch on the rows held out, and the best.
    ``n_iter_``, ``t_``
        Epochs of the last fit, and rows seen in all.
    ``n_layers_``, ``n_outputs_``, ``out_activation_``
        Layers with input and output, outputs, and what makes answers of them.
    ``n_features_in_``, ``feature_names_in_``
        Of the rows; names where the rows were a data frame.
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Perceptron._parameter_constraints,
        "label_smoothing": [Interval(Real, 0, 1, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }
    _numeric = False

    def __init__(
        self,
        hidden_layer_sizes: ArrayLike = (100,),
        activation: str = "relu",
        *,
        solver: Literal["lbfgs", "sgd", "adam"] = "adam",
        alpha: float = 0.0001,
        batch_size: int | Literal["auto"] = "auto",
        learning_rate: str | Schedule = "constant",
        learning_rate_init: float = 0.001,
        power_t: float = 0.5,
        max_iter: int = 200,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = None,
        tol: float = 1e-4,
        verbose: bool = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: float = 10,
        max_fun: int = 15000,
        dropout: float = 0.0,
        normalisation: Literal["batch", "layer"] | None = None,
        label_smoothing: float = 0.0,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        after_epoch: Callable[[EpochRecord], object] | None = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.power_t = power_t
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose
        self.warm_start = warm_start
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.n_iter_no_change = n_iter_no_change
        self.max_fun = max_fun
        self.dropout = dropout
        self.normalisation = normalisation
        self.label_smoothing = label_smoothing
        self.class_weight = class_weight
        self.after_epoch = after_epoch

    @available_if(lambda estimator: estimator.solver != "lbfgs")
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> MLPClassifier:
        """Learn from these rows once, and go on from where the last call ended.

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
            self._labels = Labels.of(y if several else np.asarray(classes))
            self.classes_ = self._labels.classes
        return self._fit(X, y, sample_weight, incremental=True)

    def predict(self, X: ArrayLike) -> Array:
        """Return the class of each row, (n,); with several labels whether each is there, (n, labels).

        Parameters
        ----------
        X
            Rows of features.
        """
        check_is_fitted(self)
        return self._labels.decode(self._answers(X))

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class, (n, classes), in the order of ``classes_``.

        Parameters
        ----------
        X
            Rows of features.
        """
        check_is_fitted(self)
        answers = self._answers(X)
        return np.hstack([1 - answers, answers]) if self.n_outputs_ == 1 else answers

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Return the logarithm of `predict_proba`.

        Parameters
        ----------
        X
            Rows of features.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _targets(self, y: Array, *, first: bool, incremental: bool) -> Array:
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if first and not incremental:
            self._labels = Labels.of(y)
        else:
            self._check_classes(y, incremental=incremental)
        self.classes_, self.n_outputs_ = self._labels.classes, self._labels.outputs
        return self._labels.encode(y)

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

    def _weights(self, y: Array, w: Array | None) -> Array | None:
        if self.class_weight is None:
            return w
        of_class = compute_sample_weight(self.class_weight, y)
        return of_class if w is None else of_class * w

    def _strata(self, y: Array) -> Array | None:
        return y if self._labels.kind == "binary" else None  # as scikit-learn does

    def _loss(self, outputs: int) -> tuple[Loss, str]:
        l2, smoothing = float(self.alpha), float(self.label_smoothing)
        if self._labels.kind == "multiclass":
            return SoftmaxCrossEntropy(smoothing=smoothing, l2=l2), "softmax"
        return BinaryCrossEntropy(outputs="sum", smoothing=smoothing, l2=l2), "logistic"

    def _score_of(self, answers: Array, t: Array, w: Array | None) -> float:
        right = answers.argmax(axis=1) == t if t.ndim == 1 else ((answers > 0.5) == (t > 0.5)).all(axis=1)
        return float(np.average(right, weights=w))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

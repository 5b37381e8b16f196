"""scikit-learn's multi-layer perceptrons on handgrad's engine: change the import line, and that is all."""

from handgrad.errors import MissingPackageError

try:
    import sklearn.base  # noqa: F401 - to hear now that it is missing
except ImportError as error:
    raise MissingPackageError(
        f"handgrad.sklearn needs scikit-learn: {error}", fix="pip install 'handgrad[sklearn]'"
    ) from None

from handgrad.sklearn.classifier import MLPClassifier
from handgrad.sklearn.regressor import MLPRegressor

__all__ = ["MLPClassifier", "MLPRegressor"]

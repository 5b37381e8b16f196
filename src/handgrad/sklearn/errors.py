"""The error that scikit-learn's users expect to be a ValueError."""

from handgrad.errors import HandgradError


class EstimatorError(HandgradError, ValueError):
    """An estimator cannot be fitted with these parameters or rows."""

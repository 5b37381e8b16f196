"""Every error handgrad raises on purpose: what is wrong, what was given, what to do."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, ClassVar, Self

__all__ = [
    "ConfigurationError", "ConversionError", "DataError", "EngineError", "EstimatorError",
    "HandgradError", "HandgradNotice", "MissingPackageError", "ProgramError", "RuleError", "RunError",
    "ShapeError", "TrainingError",
]  # fmt: skip


def escaped(text: str, *, keep: str = "") -> str:
    """Return a text with its control characters, but for those to ``keep``, as Python writes them.

    Examples
    --------
    >>> print(escaped("a name\\n  fix    that lies"))
    a name\\n  fix    that lies
    """
    return "".join(each if each.isprintable() or each in keep else repr(each)[1:-1] for each in text)


def listed(names: Iterable[str], most: int = 60) -> str:
    """Return names with commas between them, and how many more there are.

    Examples
    --------
    >>> listed("abcde", most=3)
    'a, b, c and 2 more'
    """
    known = [*names]
    more = f" and {len(known) - most:,} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more


class HandgradError(Exception):
    """The one base of handgrad's errors.

    Parameters
    ----------
    problem
        Place and rule broken, with both values: ``"linear: axis I is 7 in x and 3 in W"``.
    given
        What the caller passed, when the problem does not state it.
    fix
        What to do, when we know.

    Examples
    --------
    >>> print(HandgradError("batch size is 0", fix="give 1 or more"))
    batch size is 0
      fix    give 1 or more
    """

    escapes: ClassVar[bool] = (
        False  # what comes from files: a name with line ends could pass for a line of ours
    )

    def __init__(self, problem: str, *, given: str = "", fix: str = "") -> None:
        if self.escapes:
            problem, given, fix = map(escaped, (problem, given, fix))
        self.problem, self.given, self.fix = problem, given, fix
        lines = [problem]
        lines += [f"  given  {given}"] if given else []
        lines += [f"  fix    {fix}"] if fix else []
        super().__init__("\n".join(lines))

    def reworded(self, words: Mapping[str, str]) -> Self:
        """Return the error in the words of whom it is for: of the command line, options instead of arguments.

        Examples
        --------
        >>> error = TrainingError("the loss is not finite", fix="try clip_norm=1.0")
        >>> print(error.reworded({"clip_norm=1.0": "--clip-norm 1"}).fix)
        try --clip-norm 1
        """
        parts = [self.problem, self.given, self.fix]
        for word, other in words.items():
            parts = [part.replace(word, other) for part in parts]
        error = type(self)(parts[0], given=parts[1], fix=parts[2])
        for note in getattr(self, "__notes__", ()):
            error.add_note(note)
        return error


class RuleError(HandgradError):
    """A rule's text is not straight-line mathematics; raised where the rule is defined."""


class ShapeError(HandgradError):
    """Two sizes that must agree do not."""


class RankError(ShapeError):
    """An array has too few axes, or too many."""


class ProgramError(HandgradError):
    """A program is asked for something it does not hold."""


class DataError(HandgradError):
    """A file or an array cannot be used as data."""

    escapes = True


class ConfigurationError(HandgradError):
    """A setting is unknown, missing or out of range."""

    escapes = True


class EngineError(HandgradError):
    """An engine cannot work here."""


class EstimatorError(HandgradError, ValueError):
    """An estimator of ``handgrad.sklearn`` cannot be fitted so; a ``ValueError``, as scikit-learn's users expect."""


class TrainingError(HandgradError):
    """Training cannot go on, for example because the loss is not finite."""


class RunError(HandgradError):
    """A run folder cannot be written or read."""

    escapes = True


class ConversionError(HandgradError):
    """A network, or a part of one, has no counterpart where it is to go, or here."""


class MissingPackageError(HandgradError, ImportError):
    """An optional package is needed; the message names it."""


def need(package: str, why: str, extra: str = "") -> Any:
    """Import an optional package; where it is missing, the error names the extra of handgrad that brings it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackageError(
            f"{why} needs the package {package}", fix=f"pip install 'handgrad[{extra or package}]'"
        ) from error


ELSEWHERE = {
    "dense": "Linear", "fullyconnected": "Linear", "affine": "Linear", "swish": "SiLU", "multiheadattention": "SelfAttention",
    "batchnorm1d": "BatchNorm", "batchnorm2d": "BatchNorm", "batchnormalization": "BatchNorm", "maxpooling2d": "MaxPool2d",
    "layernormalization": "LayerNorm", "averagepooling2d": "AvgPool2d", "globalaveragepooling2d": "GlobalAvgPool2d",
    "simplernn": "RNN", "conv2dtranspose": "ConvTranspose2d", "separableconv": "SeparableConv2d", "mse": "MeanSquaredError",
    "mseloss": "MeanSquaredError", "crossentropy": "SoftmaxCrossEntropy", "crossentropyloss": "SoftmaxCrossEntropy",
    "categoricalcrossentropy": "SoftmaxCrossEntropy", "sparsecategoricalcrossentropy": "SoftmaxCrossEntropy",
    "bcewithlogitsloss": "BinaryCrossEntropy",
    "huberloss": "Huber", "smoothl1loss": "Huber", "poissonnllloss": "Poisson", "cosineannealinglr": "Cosine",
    "steplr": "StepDecay", "onecyclelr": "OneCycle", "model": "Network",
}  # fmt: skip
"""What PyTorch and Keras call handgrad's layers, losses and schedules, in small letters."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``"did you mean 'x'?"``, or the known names when none is near, or nothing where there are none.

    Examples
    --------
    >>> nearest("Dense", ["Conv2d", "Linear"])
    "did you mean 'Linear'?"
    """
    names = sorted(known)
    alike = [each for each in names if each.casefold() == name.casefold()]
    other = ELSEWHERE.get(name.replace("_", "").casefold())
    alike = alike or [each for each in names if each == other]
    close = alike or get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"choose from {listed(names)}" if names else ""


class HandgradNotice(UserWarning):
    """Something the user should know, and that changes no result."""


BETWEEN = frozenset({"handgrad", "contextlib", "sklearn", "joblib"})
"""Packages whose frames are between a user's line and a warning: handgrad, and what calls it back."""


def notify(notice: str, category: type[Warning] = HandgradNotice) -> None:
    """Warn at the user's own line, however far up it is."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(notice, category, stacklevel=level)

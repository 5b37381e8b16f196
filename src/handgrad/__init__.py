"""Neural networks whose every gradient is written out by hand: readable, proved and fast.

A public name is imported here ``as`` itself, or with the layers, losses, optimisers and schedules of its module.
"""

from typing import TYPE_CHECKING, Any

from handgrad.errors import ConfigurationError as ConfigurationError
from handgrad.errors import ConversionError as ConversionError
from handgrad.errors import DataError as DataError
from handgrad.errors import HandgradError as HandgradError
from handgrad.errors import MissingPackageError as MissingPackageError
from handgrad.errors import RuleError as RuleError
from handgrad.errors import RunError as RunError
from handgrad.errors import ShapeError as ShapeError
from handgrad.errors import TrainingError as TrainingError
from handgrad.layers.composition import *
from handgrad.layers.elementwise import *
from handgrad.layers.initialisers import INITIALISERS as INITIALISERS
from handgrad.layers.layer import Layer as Layer
from handgrad.layers.linear import *
from handgrad.layers.losses import *
from handgrad.layers.normalisation import *
from handgrad.layers.optimisers import *
from handgrad.layers.schedules import *
from handgrad.network import Network as Network
from handgrad.program import Loop as Loop
from handgrad.rules import rule as rule
from handgrad.rules import update as update
from handgrad.training import History as History
from handgrad.training import train as train

if TYPE_CHECKING:
    from handgrad.checking.check import check as check
    from handgrad.checking.subject import CheckError as CheckError
    from handgrad.checkpoints import Checkpoints as Checkpoints
    from handgrad.explaining.explain import explain as explain
    from handgrad.explaining.explanation import Explanation as Explanation

__version__ = "0.1.0"


if not TYPE_CHECKING:
    __all__ = [
        name for name, value in globals().items() if getattr(value, "__module__", "").startswith("handgrad.")
    ]
    __all__ += ["INITIALISERS", "CheckError", "Checkpoints", "Explanation", "check", "explain"]

    def __getattr__(name: str) -> Any:
        """Import what takes long, or is for few, when it is first asked for."""
        if name == "Checkpoints":
            from handgrad.checkpoints import Checkpoints

            return Checkpoints
        if name in ("CheckError", "check"):
            from handgrad import checking

            return getattr(checking, name)
        if name in ("Explanation", "explain"):
            from handgrad import explaining

            return getattr(explaining, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

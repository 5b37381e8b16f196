"""Neural networks whose every gradient is written out by hand: readable, checked and fast."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handgrad.checking.check import check as check
    from handgrad.checking.subject import CheckError as CheckError
    from handgrad.checkpoints import Checkpoints as Checkpoints
    from handgrad.errors import *
    from handgrad.explaining.explainer import explain as explain
    from handgrad.explaining.record import Explanation as Explanation
    from handgrad.generation import generate as generate
    from handgrad.layers.attention import *
    from handgrad.layers.convolution import *
    from handgrad.layers.elementwise import *
    from handgrad.layers.initialisers import INITIALISERS as INITIALISERS
    from handgrad.layers.layer import *
    from handgrad.layers.loss_functions import *
    from handgrad.layers.optimisers import *
    from handgrad.layers.parametric import *
    from handgrad.layers.recurrence import *
    from handgrad.layers.schedules import *
    from handgrad.network import Network as Network
    from handgrad.program import Loop as Loop
    from handgrad.rules import rule as rule
    from handgrad.rules import update as update
    from handgrad.training import History as History
    from handgrad.training.many import train_many as train_many
    from handgrad.training.training_run import train as train

__version__ = "0.1.0"

PUBLIC = {
    "checking": ("CheckError", "check"),
    "checkpoints": ("Checkpoints",),
    "data": (),
    "errors": tuple(import_module("handgrad.errors").__all__),
    "engines": (),
    "explaining": ("Explanation", "explain"),
    "generation": ("generate",),
    "interop": (),
    "layers": ("INITIALISERS", "Layer", "Loss", "Optimiser", "Schedule", "gpt_layers"),
    "network": ("Network",),
    "program": ("Loop",),
    "rules": ("rule", "update"),
    "runs": (),
    "sklearn": (),
    "testing": (),
    "training": ("History", "train", "train_many"),
}
"""What can be reached as ``handgrad.name``: modules, and what is in them; every layer, loss, optimiser and schedule too."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import what a name stands for when it is first asked for, so that help and errors wait for nothing."""
        if name in PUBLIC:
            return import_module(f"handgrad.{name}")
        if name == "__all__":
            kinds = import_module("handgrad.layers").KINDS
            return [*kinds, *(name for names in PUBLIC.values() for name in names)]
        home = next((module for module, names in PUBLIC.items() if name in names), "layers")
        module = import_module(f"handgrad.{home}")
        if name not in PUBLIC[home] and name not in module.KINDS:
            # what is spelt alike, Python itself adds
            other = import_module("handgrad.errors").ELSEWHERE.get(name.lower())
            hint = f": its name for it is {other!r}" if other else ""
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
        globals()[name] = getattr(module, name)
        return globals()[name]

    def __dir__() -> list[str]:
        """Return the public names too, which are not there before they are asked for."""
        own = (name for name, value in globals().items() if name[:2] == "__" or isinstance(value, ModuleType))
        return sorted({*own, *PUBLIC, *__getattr__("__all__")})

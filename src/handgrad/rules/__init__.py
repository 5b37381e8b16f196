"""The mathematics by hand: each forward above its backward, one file per family.

What a module lists in its ``__all__`` is a name of `handgrad.rules`.
"""

import sys
from typing import TYPE_CHECKING

from handgrad.rules.activations import *
from handgrad.rules.attention import *
from handgrad.rules.convolution import *
from handgrad.rules.linear import *
from handgrad.rules.losses import *
from handgrad.rules.normalisation import *
from handgrad.rules.primitives import *
from handgrad.rules.recurrence import *
from handgrad.rules.regularisation import *
from handgrad.rules.rule import *
from handgrad.rules.rule_source import *
from handgrad.rules.signature import *
from handgrad.rules.targets import *
from handgrad.rules.updates import *

if not TYPE_CHECKING:  # to type checkers, what a star brings is public as it is
    _modules = [module for name, module in sys.modules.copy().items() if name.startswith(f"{__name__}.")]
    __all__ = [name for module in _modules for name in getattr(module, "__all__", ())]

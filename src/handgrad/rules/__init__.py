"""The mathematics by hand: each forward above its backward, one file per family.

What a module lists in its ``__all__`` is a name of `handgrad.rules`.
"""

from handgrad.rules.activations import *
from handgrad.rules.combination import *
from handgrad.rules.embedding import *
from handgrad.rules.kinds import *
from handgrad.rules.linear import *
from handgrad.rules.losses import *
from handgrad.rules.normalisation import *
from handgrad.rules.primitives import *
from handgrad.rules.regularisation import *
from handgrad.rules.rule import *
from handgrad.rules.signature import *
from handgrad.rules.targets import *
from handgrad.rules.text import *
from handgrad.rules.updates import *

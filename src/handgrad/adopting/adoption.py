"""From a from-scratch network to handgrad's own: recognised, proved, compared side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from handgrad.adopting.author import AdoptError, Author, Program, check_can_be_adopted
from handgrad.adopting.author_steps import steps_of
from handgrad.adopting.recognition import Recognised, Search
from handgrad.adopting.side_by_side import SideBySide, compare_steps
from handgrad.adopting.traced_values import Array, as_rows
from handgrad.checking import Report, check
from handgrad.layers import HalfSquaredError, Loss
from handgrad.network import Network
from handgrad.tolerance import close

PROVED = 1e-8  # of the largest entry of a gradient: sums in another order, through all layers
GUARDED = 1e-4  # where the author guards a logarithm with a tiny number
UNSEEN = 3  # arrays that may be the data, where a forward shows none of its layers
Say = Callable[[str], None]


class LossAloneError(AdoptError):
    """A program is a loss of its arguments, without a layer before it."""

    def __init__(self, name: str, loss: Loss) -> None:
        super().__init__(f"{name}: is a loss alone, {loss!r}", fix="give the network that it is the loss of")
        self.loss = loss


@dataclass(frozen=True)
class Adoption:
    """A network of handgrad's that does what an author's does, and how it was compared."""

    name: str
    network: Network
    report: Report  # on the author's gradients
    factor: float  # the author's loss is so many times the network's
    exact: bool  # loss and gradients are equal up to rounding, and not up to a tiny number in a logarithm
    own_loss: bool  # whether the program has a loss
    sources: dict[str, str]  # the author's name of every parameter
    x: Array
    t: Array
    steps: SideBySide


@dataclass(frozen=True)
class Recognition:
    """A program, and the network that its forward is."""

    author: Author
    found: Recognised

    @property
    def size(self) -> tuple[bool, int]:
        """How much of a network it is: with a loss, of so many layers."""
        return self.found.loss is not None, len(self.found.layers)


def recognise(program: Program) -> Recognition:
    """Return the network of handgrad's layers that a program's forward is.

    Raises
    ------
    AdoptError
        When the forward is no chain of handgrad's layers, or its loss is none of handgrad's: it has the parts that are.
    CheckError
        When the functions cannot be run, or do not fit each other.
    """
    check_can_be_adopted(program)
    with np.errstate(all="ignore"):
        author = Author(program)
        return Recognition(author, _recognised(author))


def adopt(
    recognition: Recognition, *, name: str = "", steps: int = 5, say: Say = lambda text: None
) -> Adoption:
    """Prove that a network is the author's, and compare their training.

    Parameters
    ----------
    recognition
        What `recognise` returns.
    name
        What to call it.
    steps
        How many steps of training are compared.
    say
        Called with what is done next.

    Raises
    ------
    AdoptError
        When the network's gradients are not those of the author's forward.
    CheckError
        When one of the author's functions raises.
    """
    author, found = recognition.author, recognition.found
    program = author.program
    with np.errstate(all="ignore"):
        network, factor = _with_loss(author, found)
        exact = _proved(author, found, network, factor)
        say("checking your gradients")
        report = check(program.forward, program.backward, program.example)
        x, t = found.rows, _targets(author, found)
        say("training both")
        own = steps_of(author, _trained(author, found))
        compared = compare_steps(author, own, network, factor, (x, t), steps)
    names = {index: label for label, index in author.trace.inputs.items()}
    return Adoption(
        name=name or author.pair.name,
        network=network,
        report=report,
        factor=factor,
        exact=exact,
        own_loss=author.has_loss,
        sources={each: names.get(kept.leaf, "") for each, kept in found.arrays(network)},
        x=x,
        t=t,
        steps=compared,
    )


def _trained(author: Author, found: Recognised) -> list[str]:
    """Return the author's names of what is trained: the parameters of the network that have a gradient."""
    leaves = {kept.leaf for _, owned in found.owned for kept in owned.values()}
    return [name for name in author.arguments if author.trace.inputs[name] in leaves]


# ---------------------------------------------------------------------------------------------- recognition


def _recognised(author: Author) -> Recognised:
    """Return the network that the forward is, from the first of its arrays that can be the data."""
    leaves = _leaves(author)
    targets = [*leaves, *author.values.constants] if author.has_loss else []
    searches: list[tuple[Search, int, int]] = []
    for data, count in _data(author):
        parameters = [i for i in _parameters(author) if i != data]
        searches.append((Search(author.values, parameters, targets), data, count))
    for (search, data, count), own in [(each, own) for own in (False, True) for each in searches]:
        found = search.run(data, count, own_rules=own) if search.loss_alone is None else None
        if found is not None:
            return found
    for search, data, count in searches[: UNSEEN if author.has_loss else 0]:
        found = search.run_unseen(data, count)
        if found is not None:
            return found
    tried = [search for search, _, _ in searches]
    raise _not_recognised(
        author, max(tried, key=lambda each: (each.loss_alone is not None, len(each.longest)))
    )


def _parameters(author: Author) -> list[int]:
    """Return the arrays that may be parameters: of an object's methods, those that are not their arguments."""
    own = author.program.world if author.program.owner is not None else {}
    return [index for name, index in author.trace.inputs.items() if name not in own]


def _leaves(author: Author) -> list[int]:
    """Return the arrays that forward starts from: the inputs, and what else it reads."""
    trace = author.trace
    constants = (i for i in author.values.constants if np.ndim(trace.values[i]))
    return [*trace.inputs.values(), *constants]


def _data(author: Author) -> Iterator[tuple[int, int]]:
    """Yield the arrays that may be the data, with the number of rows they may have: the likeliest first."""
    trace = author.trace
    names = {index: name for name, index in trace.inputs.items()}

    def order(leaf: int) -> int:
        if leaf not in names:
            return 1  # the program's own data
        given = names[leaf] in author.program.world
        return (2 if names[leaf] in author.arguments else 0) if given else 3

    arrays = (i for i in _leaves(author) if np.ndim(trace.values[i]))
    numbers = (i for i in arrays if trace.values[i].dtype.kind in "fiu")
    for leaf in sorted(numbers, key=order):
        shape = np.shape(trace.values[leaf])
        counts = [1, *shape] if len(shape) == 1 else [shape[0], shape[-1]] if len(shape) == 2 else [shape[0]]
        yield from ((leaf, count) for count in dict.fromkeys(counts))


def _not_recognised(author: Author, search: Search) -> AdoptError:
    """Return the error that names what was recognised, and the line where that ends."""
    if search.loss_alone is not None:
        raise LossAloneError(author.pair.name, search.loss_alone.loss)
    steps = search.longest
    known = ", ".join(repr(step.layer) for step in steps) or "no layer"
    trace = author.trace
    start = steps[-1].value if steps else None
    after = [o for o in trace.operations if start in o.inputs] or list(trace.operations[:1])
    where = ""
    if after and after[0].place[0]:
        file, line, _ = after[0].place
        where = f"; then {file}:{line}: {trace.source(after[0])}"
    return AdoptError(
        f"{author.pair.name}: is no chain of handgrad's layers with one of its losses",
        given=f"recognised: {known}{where}",
        fix="write the part that is left as a rule, see docs/own-rule.md",
    )


# ----------------------------------------------------------------------------------------------------- proof


def _with_loss(author: Author, found: Recognised) -> tuple[Network, float]:
    """Return the network with the author's loss, or with half the squared error, and the factor between the losses."""
    network = found.network(author.trace.values)
    if found.loss is not None:
        return network, found.loss.factor
    made = Network(*found.layers, loss=HalfSquaredError(), inputs=found.rows.shape[1], dtype="float64")
    found.fill(made, author.trace.values)
    return made, 1.0


def _targets(author: Author, found: Recognised) -> Array:
    if found.loss is not None:
        return found.loss.targets
    value, count = author.trace.values[author.trace.output], len(found.rows)
    forms = zip(as_rows(value, count), as_rows(author.goal, count), strict=True)
    return np.asarray(next(goal for output, goal in forms if close(output, found.output)))


def _proved(author: Author, found: Recognised, network: Network, factor: float) -> bool:
    """Whether the network has the author's gradients up to rounding; raises `AdoptError` where it has others."""
    exact = found.loss is None or found.loss.exact
    tolerance = PROVED if exact else GUARDED
    right = author.right_gradients(author.inputs)
    ours = network.gradients(found.rows, _targets(author, found))
    for name, kept in found.arrays(network):
        wanted = kept.take(right.get(kept.leaf, np.zeros(np.shape(author.trace.values[kept.leaf]))))
        if not close(factor * ours[name], wanted, tolerance, least=1e-12):
            leaves = [each.leaf for _, each in found.arrays(network)]
            twice = leaves.count(kept.leaf) > 1
            raise AdoptError(
                f"{author.pair.name}: looks like {network!r}, and the gradient of its {name} is another",
                given="one array of the author's is two of the network's" if twice else "",
                fix="write it as a rule of its own, see docs/own-rule.md",
            )
    return exact

"""Rules: a forward written by hand with its backward right under it, and what can be asked of the pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from handgrad.arguments import other_name
from handgrad.arrays import Array
from handgrad.errors import DataError, RuleError, ShapeError, nearest
from handgrad.rules.rule_source import Text, read_text
from handgrad.rules.signature import Signature, show_shape

__all__ = ["RULES", "Rule", "UpdateRule", "rule", "update"]

RULES: dict[str, Rule] = {}  # handgrad's own rules, by name


class Rule:
    """Mathematics written by hand: a forward, and the backward that undoes it line by line.

    Made by the decorator `rule`; see there for how to write one. A rule is also an ordinary function of
    NumPy arrays, and `gradients` runs its backward.

    Attributes
    ----------
    name
        The forward function's name.
    signature
        Shapes in axis letters.
    evaluation
        The rule that takes this one's place outside training; usually itself.
    """

    def __init__(
        self, function: Callable[..., Any], signature: Signature, *, constant: bool, evaluation: Rule | None
    ) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self.__module__ = function.__module__
        self.signature = signature
        self.name = function.__name__
        self.constant = constant
        self.evaluation = evaluation or self
        self.backward_function: Callable[..., Any] | None = None
        self._sample_function: Callable[..., Any] | None = None
        self._state_function: Callable[..., Any] | None = None
        self._read()

    def _read(self) -> None:
        """Read the texts now, with every check of them, but for handgrad's own: those are read when they are first used."""
        if not _is_own(self.function):
            _ = self.forward, self._backward, self.sample, self.state

    @cached_property
    def forward(self) -> Text:
        """The forward's text."""
        text = read_text(self.function)
        if len(text.returns) != 1:
            raise RuleError(f"{text.place}: a forward returns one value, this one returns a tuple")
        if len(self.signature.inputs) != len(text.arguments):
            raise RuleError(
                f"{text.place}: the signature {self.signature} has {len(self.signature.inputs)} "
                f"arguments and the function {len(text.arguments)}"
            )
        if self.evaluation is not self:
            self._check_names(self.evaluation.forward, text.arguments, text)
        return text

    @cached_property
    def _backward(self) -> Text | None:
        if self.backward_function is None:
            return None
        text = read_text(self.backward_function)
        self._check_names(text, (*self.forward.arguments, *self.forward.locals, f"d{self.output}"))
        self._check_returns(
            text, tuple(f"d{name}" for name in self.differentiable), "where the gradients are",
            "return one gradient for each argument that has one, in the forward's order",
        )  # fmt: skip
        return text

    @cached_property
    def sample(self) -> Text | None:
        """The lines that draw a mask before the forward, or None."""
        if self._sample_function is None:
            return None
        text = read_text(self._sample_function)
        self._check_names(text, ("shape", "key"))
        masks = tuple(name for name, kind in self.forward.kinds.items() if kind == "mask")
        self._check_returns(text, masks, "where the masks are")
        if self.evaluation is self:
            raise RuleError(
                f"{text.place}: draws for training, and what {self.name} is outside training is not said",
                fix="declare @rule(..., evaluation=identity), or another rule of the same arguments",
            )
        return text

    @cached_property
    def state(self) -> Text | None:
        """The lines that update running state after a training step, or None."""
        if self._state_function is None:
            return None
        text = read_text(self._state_function, updates=True)
        self._check_names(text, (*self.forward.arguments, *self.forward.locals))
        return text

    def __repr__(self) -> str:
        return f"<rule {self.name}: {self.signature}>"

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Run the forward on arrays, as the ordinary function it is, after checking their shapes."""
        return self.function(*self.arrays(arguments, options), **options)

    @property
    def output(self) -> str:
        """The name the rule gives its output."""
        return self.forward.returns[0]

    @property
    def differentiable(self) -> tuple[str, ...]:
        """The arguments that have a gradient."""
        if self.constant:
            return ()
        return tuple(name for name in self.forward.arguments if self.forward.kinds[name] == "value")

    @property
    def backward_text(self) -> Text:
        """The backward's text; a `RuleError` when no backward has been written."""
        if self._backward is None:
            raise RuleError(
                f"{self.forward.place}: no backward is written for {self.name}",
                fix=f"write one under it with @{self.name}.backward, or declare @rule(..., constant=True)",
            )
        return self._backward

    @property
    def cached(self) -> tuple[str, ...]:
        """The values cached for the backward: the names that it reads, and nothing else."""
        upstream = f"d{self.output}"
        return tuple(name for name in self.backward_text.arguments if name != upstream)

    def backward(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate the backward, written right under the forward.

        It may name the upstream gradient (``d`` and the output's name), any argument of the forward and any
        of its local names; it returns one gradient, named ``d`` and the argument's name, for each argument
        that has one.
        """
        self._set("backward_function", "_backward", function)
        return function

    def draws(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate the lines that draw this rule's mask; they take ``shape`` and ``key``."""
        self._set("_sample_function", "sample", function)
        return function

    def updates(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate the lines that update this rule's running state after a training step."""
        self._set("_state_function", "state", function)
        return function

    def _set(self, attribute: str, text: str, function: Callable[..., Any]) -> None:
        """Take a function, and read its text; one that is no rule's leaves the rule as it was."""
        before = getattr(self, attribute)
        setattr(self, attribute, function)
        vars(self).pop(text, None)
        try:
            self._read()
        except RuleError:
            setattr(self, attribute, before)
            raise

    def _check_returns(self, text: Text, wanted: tuple[str, ...], where: str, fix: str = "") -> None:
        if text.returns != wanted:
            raise RuleError(
                f"{text.place}: returns {', '.join(text.returns)} {where} {', '.join(wanted)}", fix=fix
            )

    def _check_names(self, text: Text, known: tuple[str, ...], forward: Text | None = None) -> None:
        forward = forward or self.forward
        for name in text.arguments:
            if name not in known:
                raise RuleError(
                    f"{text.place}: takes {name}, which {self.name} does not define", fix=nearest(name, known)
                )
        for name in text.options:
            if name not in forward.options:
                raise RuleError(
                    f"{text.place}: takes the option {name}, which {self.name} does not have",
                    fix=nearest(name, forward.options),
                )
        for name in text.locals:
            if name in known:
                raise RuleError(f"{text.place}: {name} is already a name of {self.name}'s forward")

    def values(self, *arguments: Array, **options: Any) -> dict[str, Any]:
        """Run the forward lines and return every name they define, arguments and options included."""
        known = dict(zip(self.forward.arguments, self.arrays(arguments, options), strict=True))
        return self.forward.run({**self.settings(options), **known})

    def arrays(self, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> tuple[Any, ...]:
        """Bind the signature to arrays, so that none is broadcast where the mathematics has no such axis.

        Lists and numbers become arrays; what is one, of any library, stays what it is.
        """
        arguments = tuple(each if hasattr(each, "shape") else np.asarray(each) for each in arguments)
        names = self.forward.arguments
        if len(arguments) != len(names):
            raise ShapeError(
                f"{self.name}: takes {len(names)} arrays ({', '.join(names)}), and {len(arguments)} are given"
            )
        for name, each in zip(names, arguments, strict=True):
            if isinstance(each, np.ndarray) and each.dtype.kind in "OSU":
                raise DataError(f"{self.name}: {name} holds {each.dtype}, not numbers")
        shapes = dict(zip(names, map(np.shape, arguments), strict=True))
        settings = self.settings(options)
        sizes = self.signature.bind(self.name, shapes, settings)
        self.signature.output_shape(sizes, settings, self.name)
        for axes in self.signature.inputs:
            for axis in axes[1:]:  # the first is that of the rows, of which there may be none
                if 0 in sizes[axis]:
                    shown = ", ".join(f"{name}{show_shape(shape)}" for name, shape in shapes.items())
                    raise ShapeError(
                        f"{self.name}: axis {axis} is {show_shape(sizes[axis])}"
                        if len(sizes[axis]) > 1
                        else f"{self.name}: axis {axis} is 0, and an axis is 1 or longer",
                        given=shown,
                    )
        return arguments

    def settings(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return every option of the rule, at its default where ``options`` does not give it.

        Where the default is a whole number of 1 or more, or 0 or more, so is what is given; and of several, each.
        """
        known = self.forward.options
        for name in options.keys() - known.keys():
            raise RuleError(f"{self.name} has no option {name}", fix=other_name(name, known))
        for name, given in options.items():
            if problem := _misfit(given, known[name]):
                raise RuleError(f"{self.name}: {name} is {given!r}", fix=f"give {problem}")
        return {**known, **options}

    def gradients(self, upstream: Array, *arguments: Array, **options: Any) -> dict[str, Array]:
        """Run forward and backward and return the gradient of each argument that has one.

        Parameters
        ----------
        upstream
            The gradient of the output, in the output's shape.
        *arguments, **options
            As for the rule itself.

        Examples
        --------
        >>> from handgrad.rules import relu
        >>> relu.gradients(np.array([10.0, 20.0]), np.array([-1.0, 3.0]))
        {'z': array([ 0., 20.])}
        """
        values = self.values(*arguments, **options) | {f"d{self.output}": np.asarray(upstream)}
        wanted = np.shape(values[self.output])
        if np.shape(upstream) != wanted:
            raise ShapeError(
                f"{self.name}: d{self.output} is {show_shape(np.shape(upstream))}, and {self.output} is "
                f"{show_shape(wanted)}: a gradient has the shape of its value"
            )
        text = self.backward_text
        scope = {name: values[name] for name in (*text.arguments, *text.options)}
        after = text.run(scope)
        return {name: after[f"d{name}"] for name in self.differentiable}


def _is_own(function: Callable[..., Any]) -> bool:
    """Whether a function is in a file of handgrad's rules, whose texts the tests have read: importing takes as long again."""
    return (getattr(function, "__module__", None) or "").startswith("handgrad.rules.")


def _misfit(given: Any, default: Any) -> str:
    """Return what to give where an option counts something, as its default shows, and is given something else."""
    if isinstance(default, tuple):
        if not isinstance(given, tuple | list):
            return f"several numbers: ({given!r}, …)"
        if default[0] > 0 and len(given) != len(default):
            return f"{len(default)} numbers"
        return next(filter(None, (_misfit(each, default[0]) for each in given)), "")
    if not isinstance(default, int) or isinstance(default, bool):
        return ""
    counts = isinstance(given, int | np.integer) and not isinstance(given, bool)
    if counts and (default < 0 or given >= min(default, 1)):
        return ""
    return "a whole number" + (f", {min(default, 1)} or more" if default >= 0 else "")


def rule(
    signature: str,
    *,
    constant: bool = False,
    evaluation: Rule | None = None,
    where: str = "",
    **computed: str,
) -> Callable[[Callable[..., Any]], Rule]:
    """Declare a function as the forward of a rule.

    Parameters
    ----------
    signature
        The axes of each argument and of the output, for example ``"N... I, I O, O -> N... O"``.
    constant
        Whether no gradient passes through, as for one-hot targets. Otherwise a backward must follow.
    evaluation
        The rule that takes this one's place outside training, when that is another.
    where
        What must hold of axes and options: ``"D % heads == 0"``.
    **computed
        A formula for each axis of the output that no argument has, from axes and options:
        ``rule("N L C -> N P C", P="(L - size) // stride + 1")``.

    Raises
    ------
    RuleError
        With the place, when the text is not straight-line mathematics or a name is not defined.

    Examples
    --------
    A rule in a file of your own::

        @rule("... -> ...")
        def square(x):
            y = x * x
            return y

        @square.backward
        def square_backward(dy, x):
            dx = 2 * x * dy        # the slope of x² is 2x
            return dx
    """

    def declare(function: Callable[..., Any]) -> Rule:
        axes = Signature.parse(signature, where=where, **computed)
        declared = Rule(function, axes, constant=constant, evaluation=evaluation)
        if _is_own(function):
            if declared.name not in function.__globals__.get("__all__", ()):
                raise RuleError(
                    f"{declared.forward.place}: {declared.name} is not in __all__",
                    fix="add it to the list at the top of the file",
                )
            RULES[declared.name] = declared
        return declared

    return declare


class UpdateRule:
    """Lines that change a parameter in place: the one thing in a program that is not pure.

    Made by the decorator `update`. Its arguments are the parameter, its gradient, the slots (declared
    `State`) that the optimiser keeps for that parameter, and, when it names them, the ``learning_rate`` and
    the ``step`` (1, 2, …) that the training loop gives; its options are numbers.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.function, self.name = function, function.__name__
        if not _is_own(function):
            _ = self.text

    @cached_property
    def text(self) -> Text:
        """The lines."""
        text = read_text(self.function, updates=True)
        parameter, gradient = (*text.arguments, "", "")[:2]
        if gradient != f"d{parameter}":
            raise RuleError(f"{text.place}: takes a parameter and its gradient first, as in (W, dW)")
        return text

    @property
    def slots(self) -> tuple[str, ...]:
        """The arguments that the optimiser keeps for each parameter."""
        return tuple(name for name, kind in self.text.kinds.items() if kind == "state")

    def __repr__(self) -> str:
        return f"<update {self.name}>"

    def __call__(self, *arguments: Array, **numbers: Any) -> None:
        """Change the arrays in place; ``learning_rate`` and ``step`` may be given by name."""
        names, options = self.text.arguments, self.text.options
        given = dict(zip(names, arguments, strict=False)) | numbers
        for name in given.keys() - {*names, *options}:
            raise RuleError(f"{self.name} takes no {name}", fix=other_name(name, (*names, *options)))
        for name in names:
            if name not in given:
                raise RuleError(f"{self.name}: {name} is not given", fix=f"it takes {', '.join(names)}")
        self.text.run({**options, **given})


def update(function: Callable[..., Any]) -> UpdateRule:
    """Declare a function as an update rule.

    Examples
    --------
    >>> from handgrad.rules import sgd
    >>> W = np.array([1.0, 2.0])
    >>> sgd(W, np.array([10.0, 10.0]), learning_rate=0.1)
    >>> W
    array([0., 1.])
    """
    return UpdateRule(function)

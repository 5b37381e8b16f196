"""What is checked: a forward and a backward function, called alike whatever their convention."""

from __future__ import annotations

import inspect
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from handgrad.errors import HandgradError, nearest
from handgrad.tolerance import close

Array = NDArray[Any]
Inputs = dict[str, Any]
Gradients = dict[str, Array]

LARGEST = 20_000_000  # entries of all inputs
REAL = "fiub"  # kinds of types
AGAIN = 1e-5  # of the largest output: sums in float32, in the order of whichever thread is first


WAITING = (
    4  # times as long as the processor's time `within` lasts at the most, where other programs take turns
)
LONGEST_CALL = 5.0  # seconds that count between two calls: where there are more, the machine stood still


class DeadlineError(BaseException):
    """The time of `within` is over; no ordinary exception, so that none is made of it."""


@dataclass
class _Time:
    """Seconds that are left, of the thread's processor time and on the clock."""

    working: float
    waiting: float
    seen: tuple[float, float] = field(default_factory=lambda: (time.thread_time(), time.monotonic()))

    def spend(self) -> None:
        """Count what has passed since the last call; DeadlineError when nothing is left."""
        worked, waited = self.seen
        self.seen = time.thread_time(), time.monotonic()
        self.working -= min(self.seen[0] - worked, LONGEST_CALL)
        self.waiting -= min(self.seen[1] - waited, LONGEST_CALL)
        if min(self.working, self.waiting) < 0:
            raise DeadlineError


_LEFT: ContextVar[_Time | None] = ContextVar("time left", default=None)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise DeadlineError where one of the user's functions would be called after so many seconds of the processor."""
    token = _LEFT.set(_Time(seconds, WAITING * seconds))
    try:
        yield
    finally:
        _LEFT.reset(token)


class CheckError(HandgradError):
    """The functions, or their inputs, cannot be checked: they raise, or do not fit each other."""


@dataclass(frozen=True)
class Subject:
    """A pair of functions as the user wrote them, and how they are called."""

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    inputs: Inputs  # by name, in order
    positional: bool  # whether the functions take them by position rather than by name
    several: bool  # whether forward returns several arrays; backward then takes a tuple of upstream gradients
    outputs: tuple[Array, ...] = ()  # what forward returns at the inputs
    scale: float = 1.0  # of the upstream gradients that are drawn
    seconds: dict[str, float] = field(
        default_factory=dict, compare=False
    )  # of one forward, by the inputs' shapes

    @classmethod
    def of(
        cls, forward: Callable[..., Any], backward: Callable[..., Any], inputs: Mapping[str, Any]
    ) -> Subject:
        """Find out how two functions are to be called, or say why they cannot be."""
        copied = _read_inputs(inputs)
        subject = cls(forward, backward, copied, positional=not _takes_names(forward, copied), several=False)
        subject._check_calls()
        output = subject._call(forward, "forward", (), copy_of(copied))
        several = isinstance(output, tuple | list)
        outputs = tuple(map(np.asarray, output if several else [output]))
        subject = replace(subject, several=several, outputs=outputs)
        subject._check_outputs()
        return subject

    def _check_calls(self) -> None:
        """Check that both functions take what they will be called with, where they say what they take."""
        for role, function, first in (("forward", self.forward, ()), ("backward", self.backward, (None,))):
            try:
                signature = inspect.signature(function, follow_wrapped=False)
            except (TypeError, ValueError):
                continue
            in_order = (*first, *self.inputs.values()) if self.positional else first
            try:
                signature.bind(*in_order, **({} if self.positional else self.inputs))
            except TypeError as error:
                wanted = "grad_output, " * len(first) + ", ".join(self.inputs)
                raise CheckError(
                    f"{role} does not take the inputs: {error}",
                    given=f"{getattr(function, '__name__', role)}{signature}",
                    fix=f"it is called with ({wanted})",
                ) from None

    def _check_outputs(self) -> None:
        """Check that forward returns real numbers, and the same when it is called again."""
        again = self.run_forward(self.inputs)
        for output in self.outputs:
            if output.dtype.kind != "f":
                single = output.dtype == object and output.ndim == 0
                raise CheckError(
                    f"forward returns {type(output.item()).__name__ if single else output.dtype}, "
                    "not an array of real numbers",
                    fix="it returns an array of floating point, or a tuple of them",
                )
        pairs = zip(self.outputs, again, strict=False)
        if len(again) != len(self.outputs) or not all(close(a, b, AGAIN) for a, b in pairs):
            raise CheckError(
                "forward returns something else when it is called again on the same inputs",
                fix="make what it draws, a mask or a seed, one of its inputs",
            )

    @property
    def differentiable(self) -> tuple[str, ...]:
        """The inputs of floating point."""
        return tuple(name for name, value in self.inputs.items() if value.dtype.kind == "f")

    def arguments(self) -> tuple[str, ...]:
        """Return the inputs that backward returns a gradient of; raises `CheckError` where one is not finite."""
        upstream = [np.ones_like(part) for part in self.outputs]
        names = tuple(self.run_backward(upstream, self.inputs))
        for name in names:
            if not np.all(np.isfinite(self.inputs[name])):
                raise CheckError(
                    f"the input {name!r} is not finite", fix="give finite numbers, or leave its gradient out"
                )
        return names

    def run_forward(self, inputs: Inputs, *, fresh: bool = True) -> list[Array]:
        """Return the outputs as a list of arrays; forward gets copies of the inputs, or these very arrays."""
        output = self._call(self.forward, "forward", (), copy_of(inputs) if fresh else inputs)
        outputs = list(output) if self.several else [output]
        return [np.asarray(part) for part in outputs]

    def first_not_finite(self, inputs: Inputs) -> str:
        """Return NumPy's first operation in forward whose result is not finite, with its place; "" where there is none."""
        found = self.raised_by_forward(inputs, np.errstate(divide="raise", invalid="raise"))
        return found or self.raised_by_forward(inputs, np.errstate(over="raise"))

    def raised_by_forward(self, inputs: Inputs, raising: np.errstate) -> str:
        """Return the first of NumPy's errors of some kinds in forward, with its place; "" where there is none."""
        given = copy_of(inputs)
        try:
            with np.errstate(all="ignore"), raising:
                self.forward(*given.values()) if self.positional else self.forward(**given)
        except Exception as error:
            cause = error.__cause__ or error  # what calls the user's own functions raises an error of its own
            if isinstance(cause, FloatingPointError):
                where = traceback.extract_tb(cause.__traceback__)[-1]
                return f"{cause} at {where.filename}:{where.lineno}: {where.line}"
        return ""

    def run_backward(
        self, upstream: list[Array], inputs: Inputs, *, fresh: bool = True, forward: bool = True
    ) -> Gradients:
        """Return the gradients by the inputs' names; ``forward`` runs first, for functions that save something."""
        if forward:
            self._call(self.forward, "forward", (), copy_of(inputs))
        return self._named(self._returned(upstream, inputs, fresh=fresh))

    def _returned(self, upstream: list[Array], inputs: Inputs, *, fresh: bool) -> dict[str, Any]:
        given = copy_of(inputs) if fresh else inputs
        parts = tuple(map(np.array, upstream)) if fresh else tuple(upstream)
        first = parts if self.several else parts[0]
        return self._by_name(self._call(self.backward, "backward", (first,), given))

    def _call(self, function: Callable[..., Any], role: str, first: tuple[Any, ...], inputs: Inputs) -> Any:
        if (left := _LEFT.get()) is not None:
            left.spend()
        try:
            with np.errstate(all="ignore"):
                return function(*first, *inputs.values()) if self.positional else function(*first, **inputs)
        except CheckError:
            raise
        except Exception as error:
            raise raised(role, error, inputs) from error

    def whole_numbers(self, upstream: list[Array]) -> list[str]:
        """Name the inputs of whole numbers for which backward returns other numbers than zeros."""
        names = [name for name, value in self.inputs.items() if value.dtype.kind in "iu"]
        if names:
            self._call(self.forward, "forward", (), copy_of(self.inputs))
        given = self._returned(upstream, self.inputs, fresh=True) if names else {}
        return [name for name in names if _has_numbers(given.get(name))]

    def _named(self, given: dict[str, Any]) -> Gradients:
        """Return the gradients of floating-point inputs as arrays, or say what does not fit."""
        named = {n: v for n, v in given.items() if n in self.differentiable and v is not None}
        if not named:
            raise CheckError("backward returns no gradient of an input of floating point")
        arrays = {name: _real(f"backward's d{name}", value) for name, value in named.items()}
        return {n: v if v.dtype.kind == "f" else v.astype(np.float64) for n, v in arrays.items()}

    def _by_name(self, gradients: Any) -> dict[str, Any]:
        """Return what backward gave by the inputs' names, or say what does not fit."""
        if isinstance(gradients, Mapping):
            for name in gradients:
                if name not in self.inputs:
                    raise CheckError(
                        f"backward returns a gradient for {name!r}, which is no input",
                        given=f"the inputs are {', '.join(self.inputs)}",
                        fix=nearest(str(name), self.inputs),
                    )
            return dict(gradients)
        parts = gradients if isinstance(gradients, tuple | list) else (gradients,)
        names = list(self.inputs) if len(parts) == len(self.inputs) else list(self.differentiable)
        if len(parts) > len(names):
            raise CheckError(f"backward returns {len(parts)} gradients, and there are {len(names)} inputs")
        return dict(zip(names, parts, strict=False))


def _has_numbers(value: Any) -> bool:
    """Whether something is numbers that are not all zero; JAX has a type of its own for "no gradient"."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of several lengths
        return True
    return array.dtype.kind in REAL + "c" and bool(np.any(array))


def raised(role: str, error: Exception, inputs: Inputs) -> CheckError:
    """Return the error for a function that raises, with the last line of the user's own files that it went through."""
    frames = traceback.extract_tb(error.__traceback__)
    others = ("site-packages", str(Path(__file__).parent))
    own = (f for f in reversed(frames) if not any(other in f.filename for other in others))
    where = next(own, frames[-1])
    shapes = ", ".join(f"{name}{np.shape(value)}" for name, value in inputs.items())
    return CheckError(
        f"{role} raised {type(error).__name__}: {error}",
        given=f"{shapes}; at {where.filename}:{where.lineno}: {where.line}",
        fix="mend it first: a gradient can be judged only when both functions run",
    )


@contextmanager
def seeded() -> Iterator[None]:
    """Make NumPy's, Python's and PyTorch's unseeded randomness repeat itself for a moment."""
    torch = sys.modules.get("torch")
    states, make = (np.random.get_state(), random.getstate()), np.random.default_rng  # noqa: NPY002 - users draw from it
    torch_state = torch.get_rng_state() if torch is not None else None

    def seeded_generator(seed: object = None) -> np.random.Generator:
        return make(0 if seed is None else seed)  # type: ignore[arg-type]

    np.random.seed(0)  # noqa: NPY002
    random.seed(0)
    if torch is not None:
        torch.default_generator.manual_seed(0)
    np.random.default_rng = seeded_generator
    try:
        yield
    finally:
        np.random.default_rng = make
        np.random.set_state(states[0])  # noqa: NPY002
        random.setstate(states[1])
        if torch is not None:
            torch.set_rng_state(torch_state)


def _read_inputs(inputs: Mapping[str, Any]) -> Inputs:
    """Return the inputs as arrays, or say why they cannot be checked at."""
    if not inputs:
        raise CheckError("there are no inputs", fix='give a dict of arrays, {"x": x, "W": W}')
    copied: Inputs = {}
    for name, value in inputs.items():
        if not isinstance(name, str):
            raise CheckError(
                f"an input is called {name!r}", fix='give a dict of arrays by name, {"x": x, "W": W}'
            )
        copied[name] = array_of(name, value)
    if not any(value.dtype.kind == "f" for value in copied.values()):
        raise CheckError(
            "no input is of floating point, so there is nothing to differentiate", fix="give x.astype(float)"
        )
    _check_size(*copied.values())
    return copied


def _check_size(*arrays: Array) -> None:
    entries = sum(array.size for array in arrays)
    if entries > LARGEST:
        raise CheckError(
            f"the inputs have {entries:,} entries, and {LARGEST:,} are the most",
            fix="check at smaller sizes: what is right there is right at any",
        )


def array_of(name: str, value: Any) -> Array:
    """Return an input, an array or a tensor, as an array of its own."""
    array = _real(f"the input {name!r}", value.detach() if hasattr(value, "detach") else value)
    _check_size(array)
    return np.array(array)


def _real(what: str, value: Any) -> Array:
    """Return something as an array of real numbers, or say that it is none."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise CheckError(f"{what} is no array: its rows have different lengths") from None
    except (TypeError, RuntimeError) as error:  # a tensor of another device, or of a type that NumPy has not
        raise CheckError(f"{what} is {type(value).__name__}, which NumPy cannot read: {error}") from None
    if array.dtype.kind not in REAL:
        kind = type(value).__name__ if array.dtype == object else array.dtype
        raise CheckError(f"{what} is {kind}, not an array of real numbers")
    return array


def copy_of(inputs: Inputs) -> Inputs:
    """Return the same inputs in arrays of their own."""
    return {name: np.array(value) for name, value in inputs.items()}


def widened(inputs: Inputs, dtype: type[np.floating[Any]]) -> Inputs:
    """Return the inputs with those of floating point in another type."""
    return {n: np.array(v, dtype if v.dtype.kind == "f" else None) for n, v in inputs.items()}


def _takes_names(function: Callable[..., Any], inputs: Inputs) -> bool:
    """Whether a function takes every input by its name."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    kinds = {name: parameter.kind for name, parameter in parameters.items()}
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    takes_any = inspect.Parameter.VAR_KEYWORD in kinds.values()
    return takes_any or all(kinds.get(name) in by_name for name in inputs)

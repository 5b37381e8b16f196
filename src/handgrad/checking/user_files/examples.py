"""An example of how a candidate is called: as its own file calls it, or with drawn arguments that it takes."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.interfaces import Closures, has_backward, is_peer, methods_of, pair_of
from handgrad.checking.interfaces.calling import global_names
from handgrad.checking.interfaces.implied_loss import agreeing
from handgrad.checking.interfaces.names import (
    RATES,
    is_floating,
    is_gradient_name,
    is_target,
    is_upstream_name,
    plain,
)
from handgrad.checking.interfaces.signatures import parameters_of, required, returned_names
from handgrad.checking.interfaces.tensors import (
    as_floats,
    in_float64,
    is_array,
    jax_in_float64,
    like,
    to_numpy,
)
from handgrad.checking.subject import CheckError, seeded
from handgrad.checking.user_files.argument_search import ArgumentSearch, Example
from handgrad.checking.user_files.candidates import Candidate, is_backward_name
from handgrad.checking.user_files.drawn_arguments import OMITTED
from handgrad.checking.user_files.fitting import ALL_MISSHAPEN, FITS, how_well_it_fits
from handgrad.checking.user_files.needed import functions_of, lines_that_settle, needed_names
from handgrad.checking.user_files.parameter_words import (
    COUNTS,
    SCALES,
    STATES,
    is_bias,
    is_no_penalty,
    is_weight,
)
from handgrad.checking.user_files.running import SECONDS, Call, EnoughError, UserFile, time_limit

LARGEST = 5000  # entries of an array in an example: with more, only the first rows are taken
FEW_ROWS = 8
CLASSES = 20  # of which a row of each is taken too
WHOLE = 300_000  # entries of an array of which all rows are taken where a backward does not take only some
OPTIONS = {"activation", "reg", "lambd", "lr", "learningrate", "eta"}


def example_of(candidate: Candidate, user_file: UserFile, made: dict[str, Example]) -> Example:
    """Return an example of a candidate: its own file's, else a drawn one; ``made`` holds those of other classes."""
    if has_backward(candidate.forward) and not is_peer(candidate.forward):
        return Example(candidate.forward, None, None, "")
    recorded = list(_recorded(candidate, user_file))
    fitting = next((example for example, fits in recorded if fits), None)
    if fitting is not None:
        return _of_one_step(_with_optional(fitting, candidate))
    search = ArgumentSearch(candidate, user_file, made)
    example = search.run()
    if example is None and recorded:
        return recorded[0][0]  # at which the check reports what the backward raises, with its line
    if example is None:
        raise CheckError(
            f"no arguments were found that {candidate.name} takes: {search.problem}",
            given=f"the last were {search.described()}",
            fix="write an example in the file, and run it:\n" + lines_that_settle(candidate),
        )
    return _of_one_step(_with_optional(example, candidate))


def _with_optional(example: Example, candidate: Candidate) -> Example:
    """Return an example with arrays for forward's arguments that are None, where backward has a gradient for them.

    Their shapes are tried, of the other arrays and of their axes: more gradients fit with the right one.
    """
    optional = [
        name for name, each in parameters_of(functions_of(candidate)[0]).items() if each.default is None
    ]
    for name in (each for each in optional if example.inputs and example.inputs.get(each) is None):
        arrays = [each for each in example.inputs.values() if is_array(each)]
        known = _matched(example)
        others = [*map(np.shape, arrays), *_output_shapes(example)] if known and arrays else []
        for shape in dict.fromkeys(shape for each in others for shape in _shapes_beside(each)):
            with in_float64():
                drawn = _in_type_of(arrays[0], np.random.default_rng(5).normal(size=shape))
            tried = replace(
                example,
                inputs={**example.inputs, name: drawn},
                origin=f"{example.origin}, but {name} {shape}, not None",
            )
            if _matched(tried) > known:
                example = tried
                break
    return example


def _output_shapes(example: Example) -> list[tuple[int, ...]]:
    owner = example.forward if has_backward(example.forward) else copy.deepcopy(example.forward)
    pair = pair_of(owner, example.backward, copy.deepcopy(example.inputs))
    output = pair.forward(**pair.inputs) if isinstance(pair.inputs, dict) else ()
    return [*map(np.shape, output if isinstance(output, tuple) else (output,))]


def _shapes_beside(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    yield from (shape, shape[-1:], shape[:1], (1, *shape[-1:]), (*shape[:1], 1))


def _matched(example: Example) -> int:
    """Return how many gradients fit an example's arguments, 0 where one has another shape or it does not run."""
    try:
        with seeded(), np.errstate(all="ignore"):
            stage, count, _ = how_well_it_fits(example.forward, example.backward, example.inputs)
    except Exception:  # whatever the author's code raises at another shape
        return 0
    return count if stage == FITS else 0


def _of_one_step(example: Example) -> Example:
    """Return an example with its first row only, where a training makes one step for each row: that is no gradient."""
    inputs = example.inputs
    lengths = [len(value) for value in inputs.values() if is_array(value) and value.ndim]
    rows = max(lengths, key=lengths.count, default=1)
    if rows == 1 or not _moves_with_rate(example):
        return example
    data = {name: v for name, v in inputs.items() if is_array(v) and v.ndim and len(v) == rows}
    row = next(
        (k for k in range(rows) if all(np.any(to_numpy(v[k])) or is_target((n,)) for n, v in data.items())), 0
    )
    place = f"row {row}" if row else "the first row"
    first = inputs | {name: v[row : row + 1] for name, v in data.items()}
    single = replace(example, inputs=first, origin=f"{example.origin}; {place}: each makes a step")
    return example if _moves_with_rate(single) else single


def _moves_with_rate(example: Example) -> bool:
    """Whether what a step moves, over its learning rate, depends on that rate: it is several steps."""
    forward = example.forward
    if has_backward(forward) or isinstance(forward, type | FunctionType) or not hasattr(forward, "__dict__"):
        return False
    found = []
    for factor in (1.0, 0.5):
        owner = copy.deepcopy(forward)
        held = {name: value for name, value in vars(owner).items() if _is_rate(name, value)}
        vars(owner).update({name: factor * value for name, value in held.items()})
        given = {n: factor * v if _is_rate(n, v) else v for n, v in example.inputs.items()}
        if not held and not any(map(_is_rate, given, given.values())):
            return False
        try:
            with seeded(), np.errstate(all="ignore"):
                pair = pair_of(owner, example.backward, given)
                if not any("learning rate" in text for text in pair.matched):
                    return False
                assert isinstance(pair.inputs, dict)
                found.append(pair.backward(1.0, **pair.inputs))
        except Exception:  # it has run as it is: with another rate, something else is wrong with it
            return False
    return any(not np.allclose(found[0][name], found[1][name], rtol=1e-6) for name in found[0])


def _is_rate(name: str, value: Any) -> bool:
    return plain(name) in RATES and isinstance(value, float)


def _recorded(candidate: Candidate, user_file: UserFile) -> Iterator[tuple[Example, bool]]:
    """Yield examples of the arguments that the file itself calls a candidate with, and whether its backward takes them."""
    functions = functions_of(candidate)
    backward = methods_of(candidate.forward).backward if candidate.has_methods else candidate.backward
    cls = candidate.forward if isinstance(candidate.forward, type) else type(candidate.forward)
    is_called = any((cls.__name__, each.__name__) in user_file.calls for each in functions)
    owner = cls.__name__ if is_called else ""
    calls = [
        user_file.call_of(each, owner) or _call_of_rule(candidate, each, user_file) for each in functions
    ]
    needed = needed_names(candidate)
    given: dict[str, Any] = {}
    numbered = list(enumerate(zip(calls, functions, strict=True)))
    # Backward's targets are those of forward's rows; a loss may first be called for all rows, to be printed. Where it takes
    # the same arguments, its own are taken: a loss that is printed may come after an update.
    results = {*returned_names(functions[0])} - {*needed}  # which forward is to compute, and no call gives
    forward_name, withheld = getattr(functions[0], "__qualname__", ""), set[str]()
    alike = len(functions) == 2 and (
        required(functions[0]) == required(functions[1])
        or _differ(*(each.arguments for each in calls if each))
    )
    for k, (call, function) in numbered[::-1] if alike else (numbered[0], *numbered[:0:-1]):
        outputs = {n for n, maker in (call.returned if call else {}).items() if maker == forward_name}
        if all(n in outputs for n in (call.arguments if call else ()) if is_target((n,))):
            outputs = {
                n for n in outputs if not is_target((n,))
            }  # soft targets, of another network's forward
        withheld |= outputs
        for name, value in call.arguments.items() if call else ():
            is_upstream = is_backward_name(function.__name__) or (
                function == backward and is_upstream_name(name)
            )
            asked = k == 0 or name in needed or not is_upstream or _is_asked_for(name)
            asked = asked and not (k and name in results | outputs)
            if name not in given and _is_filled(value, given):
                given[name] = {key: np.zeros_like(each) for key, each in value.items()}
            elif name not in given and asked and (name in needed or k or name == "self"):
                given[name] = value
    missing = {name for name, default in needed.items() if default is OMITTED} - given.keys() - withheld
    if missing or not any(calls):
        return
    owners = [given.pop("self", None)] if candidate.is_class else [candidate.forward]
    if issubclass(cls, Closures):
        owners = [cls.of(each) for each in user_file.made.get(cls.__name__, ()) if each is not None]
    for owner in owners:
        yield from _examples_with(owner, candidate, given)


def _differ(*arguments: Mapping[str, Any]) -> bool:
    """Whether two calls have other shapes of the same argument: all rows, and a minibatch."""
    shared = set(arguments[0]).intersection(*arguments[1:]) if len(arguments) == 2 else ()
    return any(
        np.shape(arguments[0][name]) != np.shape(arguments[1][name])
        for name in shared
        if is_array(arguments[0][name])
    )


def _call_of_rule(candidate: Candidate, function: Callable[..., Any], user_file: UserFile) -> Call | None:
    """Return the first call of the ``fwd`` of JAX's ``defvjp``, with its function's names, in float64.

    Within ``jax.grad`` it is called, and the function is not.
    """
    call = user_file.call_of(getattr(candidate.forward, "fwd", None))
    if call is None:
        return None
    with in_float64():
        values = [jax_in_float64(value) for value in call.arguments.values()]
    return Call(dict(zip(parameters_of(function), values, strict=False)))


def _examples_with(
    forward: Any, candidate: Candidate, given: dict[str, Any]
) -> Iterator[tuple[Example, bool]]:
    """Yield a candidate's examples with some object and the arguments of a call, if its forward takes them."""
    held = (
        vars(forward) if not isinstance(forward, type | FunctionType) and hasattr(forward, "__dict__") else {}
    )
    off = [name for name, value in held.items() if is_no_penalty(name, value)]
    if off:
        forward = copy.deepcopy(forward)
        vars(forward).update({name: _telling(name, held[name]) for name in off})
    options: list[tuple[dict[str, Any], list[str]]] = [(given, [])]
    if rows := _rows(given):
        chosen = _chosen(given, rows)
        some = {name: _some_rows(value, rows, chosen) for name, value in given.items()}
        some |= _counting(rows, len(chosen), candidate)
        few = some, [f"{len(chosen)} of {rows} rows"]
        largest = max(value.size for value in given.values() if isinstance(value, np.ndarray))
        if not _agrees_better(forward, candidate, given, some):
            options = [few, *options[: largest <= WHOLE]]
    for inputs, said in (each for option in options for each in _variants(*option)):
        fits = _fits(forward, candidate, inputs)
        if fits is not None:
            penalties = [f"{name} {inputs[name]}" for name in given if is_no_penalty(name, given[name])]
            penalties += [f"{name} {vars(forward)[name]}" for name in off]
            other = "".join(f", but {each}" for each in [", ".join([*penalties, *said])] if each)
            yield Example(forward, candidate.backward, inputs, f"as the file calls it{other}"), fits


def _agrees_better(forward: Any, candidate: Candidate, whole: dict[str, Any], some: dict[str, Any]) -> bool:
    """Whether more gradients agree with the slopes at all rows than at some: the author's code holds their number."""
    counts = []
    for inputs in (whole, some):
        owner = forward if has_backward(forward) else copy.deepcopy(forward)
        try:
            with seeded(), np.errstate(all="ignore"), time_limit(SECONDS):
                counts.append(agreeing(pair_of(owner, candidate.backward, copy.deepcopy(inputs)))[0])
        except (Exception, EnoughError):  # whatever the author's code raises; or it takes too long
            counts.append(0)
    return counts[0] > counts[1]


def _fits(forward: Any, candidate: Candidate, inputs: dict[str, Any]) -> bool | None:
    """Whether a candidate's backward takes what its file gives its forward; None where it is not called that far."""
    try:
        with seeded(), np.errstate(all="ignore"):
            stage, *_ = how_well_it_fits(forward, candidate.backward, inputs, drawn=False)
    except (Exception, SystemExit) as error:
        own = getattr(functions_of(candidate)[-1], "__code__", None)
        frames = traceback.walk_tb(error.__traceback__)
        return False if any(frame.f_code is own for frame, _ in frames) else None
    return True if stage >= ALL_MISSHAPEN else None


def _variants(inputs: dict[str, Any], said: list[str]) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield inputs without what hides mistakes, a stride of 1 and arrays of zeros; as floats; and as they are.

    With them comes what is said to be other than in the file.
    """
    strides: list[str] = []

    def wider(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: wider(str(key), each) for key, each in value.items()}
        if plain(name).startswith("stride") and isinstance(value, int) and value == 1:
            strides.append(name)
            return 2
        return value

    inputs = {name: _telling(name, value) for name, value in inputs.items()}
    floating = {name: value if is_target((name,)) else as_floats(value) for name, value in inputs.items()}
    generator = np.random.default_rng(5)
    zeros = {name: value for name, value in floating.items() if _hides(name, value)}
    with in_float64():
        drawn = {
            name: _in_type_of(value, _informative(generator, name, value)) for name, value in zeros.items()
        }
    told = [*said, *(f"{name} drawn, not 0" for name in drawn)]
    changed = {name: wider(name, value) for name, value in (floating | drawn).items()}
    yield from [(changed, [*told, "stride 2"])] if strides else []
    yield from [(floating | drawn, told)] if drawn else []
    yield from ((floating, said), (inputs, said))


def _hides(name: str, value: Any) -> bool:
    """Whether an array is 0 everywhere, and no target or gradient: what is multiplied with it would not show."""
    is_data = is_array(value) and is_floating(value) and not (is_target((name,)) or is_gradient_name(name))
    return is_data and np.size(to_numpy(value)) > 1 and not np.any(to_numpy(value))


def _informative(generator: np.random.Generator, name: str, value: Any) -> Any:
    """Draw numbers in place of zeros: of 0 and 1 for data, which may be flags or indices; of a parameter or a state any."""
    any_number = plain(name) in STATES or plain(name).startswith((*SCALES, "running", "prev"))
    if any_number or is_weight(name) or is_bias(name):
        return generator.uniform(0.2, 1.0, np.shape(value))
    flags = generator.integers(0, 2, np.shape(value)).astype(float)
    flags.flat[0] = 1.0
    return flags


def _in_type_of(value: Any, numbers: Any) -> Any:
    """Return numbers as an array of a value's library and type."""
    return like(value, numbers.astype(to_numpy(value).dtype))


def _telling(name: str, value: Any) -> Any:
    """Return 1 for a number of epochs: the gradient is that of one step; and a penalty's factor that is not 0."""
    if any(word in plain(name) for word in COUNTS) and isinstance(value, int):
        return 1
    return 0.1 if is_no_penalty(name, value) else value


def _is_asked_for(name: str) -> bool:
    """Whether a recorded argument of a backward is one to give: neither what forward returned nor an upstream gradient."""
    return is_target((name,)) or plain(name) in OPTIONS


def _is_filled(value: Any, given: dict[str, Any]) -> bool:
    """Whether a dictionary has the keys of another one that is given: gradients add up in it, from 0."""
    return isinstance(value, dict) and any(
        isinstance(each, dict) and each.keys() == value.keys() and each is not value
        for each in given.values()
    )


def _rows(given: dict[str, Any]) -> int:
    """Return the number of rows, or columns, of the first large array: how many targets there are; 0 without one."""
    arrays = {name: value for name, value in given.items() if isinstance(value, np.ndarray) and value.ndim}
    large = [value for value in arrays.values() if value.size > LARGEST]
    counts = {size for name, value in arrays.items() if is_target((name,)) for size in value.shape}
    common = (size for value in large for size in value.shape if size in counts)
    rows = max(common, default=len(large[0])) if large else 0
    return rows if rows > FEW_ROWS else 0


def _chosen(given: dict[str, Any], rows: int) -> Any:
    """Return the indices of a few rows: the first, and one of each class, without which one-hot rows are shorter."""
    found = np.arange(FEW_ROWS)
    for name, value in given.items():
        if is_target((name,)) and np.shape(value) == (rows,) and np.asarray(value).dtype.kind in "iu":
            first_of_each = np.unique(value, return_index=True)[1]
            found = np.union1d(found, first_of_each) if len(first_of_each) <= CLASSES else found
    return found


def _some_rows(value: Any, rows: int, chosen: Any) -> Any:
    """Return what is chosen of an array's rows, or of its columns; of their number how many; and other values as they are."""
    if type(value) is int and value == rows:
        return len(chosen)
    axes = [axis for axis, size in enumerate(np.shape(value)) if size == rows]
    return np.take(value, chosen, axes[0]) if axes and isinstance(value, np.ndarray) else value


def _counting(rows: int, count: int, candidate: Candidate) -> dict[str, int]:
    """Return the global variables of a candidate's functions that are the number of rows, ``m``, as that of some rows."""
    used = {
        name: getattr(each, "__globals__", {}).get(name)
        for each in functions_of(candidate)
        for name in global_names(each)
    }
    return {name: count for name, value in used.items() if type(value) is int and value == rows}

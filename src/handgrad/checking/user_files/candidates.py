"""What a file has that can be checked: pairs of functions, classes, losses with their gradients, derivatives."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from handgrad.checking.interfaces import (
    class_of_closures,
    flag_of,
    has_backward,
    is_chain_name,
    is_only_jitted,
    is_peer,
    is_training,
    methods_of,
    pullback_of,
    returns_loss_and_gradients,
    trains_alone,
    written_forward,
)
from handgrad.checking.interfaces.names import (
    FORWARD_WORDS,
    is_gradient_name,
    is_loss_name,
    is_target,
    plain,
    words_of,
)
from handgrad.checking.interfaces.signatures import definition_of, names_of, required, returned_names
from handgrad.checking.user_files.parameter_words import is_bias, is_weight
from handgrad.checking.user_files.running import UserFile

BACKWARD_WORDS = {
    "backward", "backwards", "back", "bwd", "backprop", "backpropagation", "backpropagate", "bprop", "grad", "grads",
    "gradient", "gradients", "derivative", "derivatives", "deriv", "prime", "d", "vjp", "diff", "gradienten", "gradientes",
    "atras", "arriere", "rueckwaerts", "retropropagar", "retropropagation", "retropropagacion",
}  # fmt: skip
EMPTY_WORDS = {"prop", "propagation", "propagate", "pass", "compute", "calculate", "calc", "get", "of", "the", "model",
               "func", "fn", "function", "f", "step"}  # fmt: skip
TRYING = {
    "test",
    "benchmark",
    "time",
    "check",
    "compare",
}  # in the names of functions that only call a backward
UPDATING = ("train", "update", "fit", "sgd", "step", "optimize", "optimise", "descent")


@dataclass(frozen=True)
class Candidate:
    """Something to check by its name in the file: a function with its backward, or a class or function with both."""

    name: str
    forward: Any
    backward: Callable[..., Any] | None = None

    @property
    def is_class(self) -> bool:
        """Whether an object of it has to be made first."""
        return isinstance(self.forward, type) and not has_backward(self.forward)

    @property
    def has_methods(self) -> bool:
        """Whether its forward and backward are methods, of a class or of an object."""
        return self.backward is None and not isinstance(self.forward, FunctionType)

    @property
    def backward_name(self) -> str:
        """The name of its backward, where that is a function of its own."""
        return getattr(self.backward, "__name__", "")


def candidates_in(user_file: UserFile) -> list[Candidate]:
    """Return what a file has to check, in its order: what has no leading underscore, or holds a backward itself."""
    names = user_file.names
    own = {n: v for n, v in _own(user_file).items() if not n.startswith("_") or has_backward(v)}
    made = {name: cls for name, value in own.items() if (cls := _class_of_closures(value)) is not None}
    own = {name: value for name, value in own.items() if _maker_of(value) not in made} | made
    found = list(_with_backward(own))
    rules = _registered(found)
    plain = {name: written_forward(value) if is_only_jitted(value) else value for name, value in own.items()}
    functions = {
        name: value
        for name, value in plain.items()
        if isinstance(value, FunctionType) and id(value) not in rules
    }
    found += pairs_of(functions)
    used = {id(each) for one in found for each in (one.forward, one.backward)}
    for name, value in functions.items():
        if (
            id(value) not in used
            and not _is_part(value, found)
            and any(
                shape(value) for shape in (flag_of, returns_loss_and_gradients, is_training, _has_pullback)
            )
        ):
            found.append(Candidate(name, value))
    classes = [
        value
        for value in own.values()
        if isinstance(value, type) and _has_both(value) and not has_backward(value)
    ]
    bases = {base for cls in classes for base in cls.__mro__[1:]}
    found += [Candidate(cls.__name__, cls) for cls in classes if cls not in bases]
    objects = {name: value for name, value in names.items() if _is_object(value) and not name.startswith("_")}
    found += [
        Candidate(name, value) for name, value in objects.items()
        if type(value) not in classes and not any(type(value) in cls.__mro__ for cls in classes)
    ]  # fmt: skip
    if not found:
        found = [*_fed(functions, user_file.tree)] or [*_updates(functions)]
    order = list(names)
    return sorted(found, key=lambda each: order.index(each.name))


def _class_of_closures(value: Any) -> type | None:
    """Return the class of what a function makes, where that has a forward and a backward."""
    cls = class_of_closures(value) if isinstance(value, FunctionType) else None
    return cls if cls is not None and _has_both(cls) else None


def _has_pullback(function: FunctionType) -> bool:
    return pullback_of(function) is not None


def _maker_of(value: Any) -> str:
    """Return the name of the function that has made another, or ""."""
    inside = isinstance(value, FunctionType) and "<locals>" in value.__code__.co_qualname
    return value.__code__.co_qualname.partition(".")[0] if inside else ""


def _module_of(value: Any) -> str:
    """Return the module that something is defined in; what autograd's ``primitive`` made holds it as ``fun``."""
    return str(getattr(getattr(value, "fun", value), "__module__", ""))


def _registered(candidates: list[Candidate]) -> set[int]:
    """Return the identities of the functions that JAX or a rule of handgrad holds as a candidate's backward."""
    held = ("fwd", "bwd", "jvp", "backward_function")
    return {id(getattr(each.forward, part, None)) for each in candidates for part in held}


def _with_backward(own: Mapping[str, Any]) -> Iterator[Candidate]:
    """Yield what has a backward of its own, under one name: ``Square``, and not ``square = Square.apply`` too."""
    seen = set()
    for name, value in own.items():
        made_of_own = any(type(value) is each for each in own.values()) and _has_both(
            type(value)
        )  # which is checked as a class
        if has_backward(value) and not made_of_own:
            key = id(written_forward(value)) if is_peer(value) else name
            if key not in seen and not is_only_jitted(value):
                yield Candidate(name, value)
            seen.add(key)


def parts_of(candidate: Candidate) -> set[str]:
    """Return the names that a candidate's backward calls: what it is made of."""
    code = getattr(candidate.backward or candidate.forward, "__code__", None)
    if code is None and candidate.is_class:
        functions = _functions_in(candidate.forward).values()
        return {name for function in functions for name in function.__code__.co_names}
    return set(code.co_names) if code else set()


def callers_first(candidates: list[Candidate]) -> list[Candidate]:
    """Return candidates with those that are made of others before these."""
    by_name = {each.backward_name or each.name: each for each in candidates}

    def depth(candidate: Candidate, left: int) -> int:
        parts = [
            by_name[name] for name in by_name.keys() & parts_of(candidate) if by_name[name] is not candidate
        ]
        return 1 + max((depth(part, left - 1) for part in parts), default=0) if left else 0

    return sorted(candidates, key=lambda each: -depth(each, len(candidates)))


def run_by(candidates: list[Candidate], user_file: UserFile) -> set[str]:
    """Return the names of what candidates may run of their file: their own, what they call, and what that calls."""
    own = _own(user_file)
    left = [part for each in candidates for part in (each.forward, each.backward) if part is not None]
    run = {getattr(each, "__name__", "") for each in left}
    for each in left:  # which grows
        kind = each if isinstance(each, type | FunctionType) else type(each)
        called = {name for function in _functions_in(kind).values() for name in function.__code__.co_names}
        left += [own[name] for name in called - run if name in own]
        run |= called
    return run


def not_taken(candidates: list[Candidate], user_file: UserFile) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each function or method that carries gradients back, and that no candidate runs."""
    backwards = {each for each in run_by(candidates, user_file) if is_chain_name(each)}
    for name, function in _not_run(candidates, user_file):
        if _carries_back(function, backwards):
            yield function.__code__.co_firstlineno, name


def calling_backward(candidates: list[Candidate], user_file: UserFile) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each function that gives a candidate's backward an upstream gradient of its own.

    It is none that a candidate runs. A backward that takes the target starts from the loss itself.
    """
    found = [methods_of(each.forward).backward if each.has_methods else each.backward for each in candidates]
    backwards = {
        each.__name__ for each in found if each and not any(is_target((name,)) for name in required(each))
    }
    for name, function in _not_run(candidates, user_file):
        if backwards & {*function.__code__.co_names} and not {*words_of(function.__name__)} & TRYING:
            yield function.__code__.co_firstlineno, name


def _not_run(candidates: list[Candidate], user_file: UserFile) -> Iterator[tuple[str, FunctionType]]:
    """Yield the functions and methods of a file that no candidate runs, and that do something, with their names."""
    run, registered = run_by(candidates, user_file), _registered(candidates)
    bases = {base for each in candidates for base in getattr(each.forward, "__mro__", ())}
    for name, value in _own(user_file).items():
        is_base = isinstance(value, type) and value in bases  # an object may have no hash
        taken = name in run or is_base or has_backward(value) or id(value) in registered
        for method, function in ({} if taken else _functions_in(value)).items():
            if method not in run and not _is_abstract(function):
                yield f"{name}.{method}" if isinstance(value, type) else name, function


def _carries_back(function: FunctionType, checked: set[str]) -> bool:
    """Whether a function is a backward by its name; or computes gradients or an update from targets or errors itself.

    What calls a backward that is ``checked`` does not: it trains with it, compares it, draws it.
    """
    name, words = function.__name__, {*words_of(function.__name__)}
    if words & TRYING:
        return False
    if is_chain_name(name) and not words & {"gradients", "grads"}:
        return True
    from_targets = is_chain_name(name) and any(is_target((each,)) for each in required(function))
    moves = bool(words & {*UPDATING}) and _moves_by_errors(function)
    return (from_targets or moves) and not {*function.__code__.co_names} & checked


def _moves_by_errors(function: FunctionType) -> bool:
    """Whether a function adds to weights what it makes of errors: ``edge.weight -= rate * neuron.delta * …``."""
    nodes = ast.walk(definition_of(function) or ast.Pass())
    for each in (node for node in nodes if isinstance(node, ast.AugAssign)):
        target = each.target.value if isinstance(each.target, ast.Subscript) else each.target
        moved = ast.unparse(target).rpartition(".")[2]
        by_errors = any(plain(name).startswith(("delta", "error")) for name in names_of(each.value))
        if by_errors and (is_weight(moved) or is_bias(moved)):
            return True
    return False


def _own(user_file: UserFile) -> dict[str, Any]:
    """Return what a file defines itself."""
    return {n: v for n, v in user_file.names.items() if _module_of(v) == user_file.module.__name__}


def _functions_in(value: Any) -> dict[str, FunctionType]:
    """Return the functions of a class by name, or a function by its own."""
    every = vars(value) if isinstance(value, type) else {getattr(value, "__name__", ""): value}
    return {name: each for name, each in every.items() if isinstance(each, FunctionType)}


# ----------------------------------------------------------------------------------- pairs of functions


def is_backward_name(name: str) -> bool:
    """Whether a function's name says that it is a backward or a derivative."""
    words = words_of(name)
    return bool(BACKWARD_WORDS & set(words)) or _derived(name) != ""


def _derived(name: str) -> str:
    """Return what a name like ``dsigmoid`` or ``sigmoidprime`` is the derivative of, or ""."""
    low = plain(name)
    for word in ("backward", "derivative", "gradient", "deriv", "prime", "grad"):
        if low.endswith(word) and len(low) > len(word):
            return low.removesuffix(word)
    return low[1:] if low.startswith("d") and len(low) > 3 else ""


def _stem(name: str) -> str:
    dropped = BACKWARD_WORDS | FORWARD_WORDS | EMPTY_WORDS
    return "".join(word for word in words_of(name) if word not in dropped)


def pairs_of(functions: dict[str, FunctionType]) -> list[Candidate]:
    """Pair each backward with the forward of its name, or the only ones with each other."""
    found: list[Candidate] = []
    for name, backward in functions.items():
        forward = _forward_of(name, functions)
        if forward:
            found.append(Candidate(forward, functions[forward], backward))
    return found


def pairs_in(names: Mapping[str, Any]) -> dict[str, str]:
    """Return the name of the backward of each function, also of those that the file imports."""
    functions = {name: value for name, value in names.items() if isinstance(value, FunctionType)}
    return {name: backward for backward in functions if (name := _forward_of(backward, functions))}


def _forward_of(backward: str, functions: dict[str, FunctionType]) -> str:
    """Return the name of the forward that belongs to a backward's name, or ""."""
    if not is_backward_name(backward) or returns_loss_and_gradients(functions[backward]):
        return ""
    others = [name for name in functions if name != backward]
    said = [name for name in others if not BACKWARD_WORDS & set(words_of(name))]
    if BACKWARD_WORDS & set(words_of(backward)):
        fits = [name for name in said if _stem(name) == _stem(backward)]
        rest = set(words_of(backward)) - BACKWARD_WORDS
        fits.sort(key=lambda name: len(rest ^ (set(words_of(name)) - FORWARD_WORDS)))  # rnn, and not rnn_step
        forwards = [name for name in fits if FORWARD_WORDS & set(words_of(name))]
        loss = _loss_of_the_same_arguments(backward, functions)
        if fits and not (loss and _stem(backward) == ""):
            return (forwards or fits)[0]
        if backward.lower().startswith("d_") or (len(words_of(backward)) > 1 and _derived(backward)):
            plains = [name for name in others if plain(name) == _derived(backward)]
            if plains:
                return plains[0]
        if loss:
            return loss
        if _stem(backward) == "" or "back" in backward:
            forwards = [
                name for name in said
                if FORWARD_WORDS & set(words_of(name)) or "forward" in plain(name) or "predict" in plain(name)
            ]  # fmt: skip
            losses = [name for name in said if is_loss_name(name)]
            return (
                forwards[0] if len(forwards) == 1 else losses[0] if len(losses) == 1 and not forwards else ""
            )
        return ""
    return next((name for name in others if plain(name) == _derived(backward)), "")


def _is_part(function: FunctionType, found: list[Candidate]) -> bool:
    """Whether a backward that takes the same calls a function: what it returns is the gradient of some rows."""
    backwards = [each.backward for each in found if each.backward and function.__name__ in parts_of(each)]
    return any(required(backward) == required(function) for backward in backwards)


def _loss_of_the_same_arguments(backward: str, functions: dict[str, FunctionType]) -> str:
    """Return the only loss that takes what a backward takes, or "": ``log_loss(X, y, w, b)``, ``gradients(X, y, w, b)``.

    A backward that others call is a part of theirs: the gradient of some rows.
    """
    given = required(functions[backward])
    alike = [name for name in functions if required(functions[name]) == given]
    callers = [
        name for name in alike if backward in functions[name].__code__.co_names and is_backward_name(name)
    ]
    losses = [name for name in alike if is_loss_name(name) and not is_backward_name(name)]
    return losses[0] if len(given) > 1 and len(losses) == 1 and not callers else ""


def _fed(functions: dict[str, FunctionType], tree: ast.Module) -> Iterator[Candidate]:
    """Yield functions that return gradients, in any language, each with the one whose results it takes.

    It takes them by their names, or where the file calls it: ``loss, cache = there(x)``, ``da, db = back(cache)``.
    """
    passed = _passed_on(tree)
    for other, backward in functions.items():
        if not any(map(is_gradient_name, returned_names(backward))):
            continue
        for name, forward in functions.items():
            by_name = set(returned_names(forward)) & set(required(backward)) - {""}
            if forward is not backward and (by_name or (name, other) in passed):
                yield Candidate(name, forward, backward)
                break


def _passed_on(tree: ast.Module) -> set[tuple[str, str]]:
    """Return the pairs of functions of which the second is given a name that the first's result was assigned to."""
    assigned = {
        target.id: value.func.id
        for statement in ast.walk(tree)
        for value in [getattr(statement, "value", None)]
        if isinstance(statement, ast.Assign)
        and isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        for whole in statement.targets
        for target in ast.walk(whole)
        if isinstance(target, ast.Name)
    }
    return {
        (assigned[argument.id], call.func.id)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        for argument in call.args
        if isinstance(argument, ast.Name) and argument.id in assigned
    }


def _updates(functions: dict[str, FunctionType]) -> Iterator[Candidate]:
    """Yield functions that update parameters, each with the only loss of the file."""
    losses = [name for name in functions if is_loss_name(name)]
    for name, function in functions.items():
        if len(losses) == 1 and name not in losses and set(words_of(name)) & set(UPDATING):
            yield Candidate(losses[0], functions[losses[0]], function)


# ---------------------------------------------------------------------------- one function, one class


def _has_both(cls: type) -> bool:
    """Whether objects of a class have both a forward or a loss, and a backward or an update, that do something."""
    methods = methods_of(cls)
    if methods.backward is None or _is_abstract(methods.backward):
        return any(returns_loss_and_gradients(loss) for loss in methods.losses)
    forward = methods.forward or (methods.losses[0] if methods.losses else None)
    if trains_alone(methods.backward, forward, methods.losses):
        return True
    return forward is not None and not _is_abstract(forward)


def _is_object(value: Any) -> bool:
    """Whether a value of the module is an object with a forward and a backward of someone's own."""
    mine = type(value).__module__.startswith(
        ("numpy", "builtins", "handgrad", "torch", "jax", "pandas", "polars")
    )
    return (
        not mine
        and not isinstance(value, type | FunctionType)
        and hasattr(value, "__dict__")
        and _has_both(type(value))
    )


def _is_abstract(function: Callable[..., Any]) -> bool:
    """Whether a function does nothing but raise, pass or describe itself."""
    definition = definition_of(function)
    if definition is None:
        return False
    kinds = (ast.Pass, ast.Raise)
    return all(
        isinstance(each, kinds) or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        for each in definition.body
    )

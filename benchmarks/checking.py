"""`handgrad.check` and `torch.autograd.gradcheck`, side by side on a folder of cases, and their speed on a network.

    python benchmarks/checking.py [FOLDER ...] [--seeds 5] [--only cases] [--every 4]
    python benchmarks/checking.py --only cases --without edits
    python benchmarks/checking.py --only programs --without "torch and JAX on NumPy"

A folder has two of them, `wrong/` and `right/`, of modules with `inputs(rng)`, `forward(**inputs)` and
`backward(grad_output, **inputs)`. Those in `wrong/` say what is expected: `EXPECT` and `ACCEPT`, codes of the
mistake; `WHERE`, the arguments; `backward_fixed`. The answers are taken out of the file before it is checked.

detected      wrong cases not called right: wrong, or "right, but" with its reason
false alarms  right cases called wrong; "cannot tell" is counted by itself
named         wrong cases whose first finding has the expected code and argument
repaired      wrong cases whose file, with the proved repair written into it, has the gradients of `backward_fixed`
              on three fresh draws
seconds, CPU  for one seed; of handgrad, with the proof that a written repair is right

``--without`` switches a mechanism of the checker off, to measure what it is worth.
gradcheck is left out then, and where PyTorch is not installed. ``lines`` is the median number of lines that a repair changes.
``--only programs`` checks the programs of `tests/checking/programs`: code as people write it, in NumPy, PyTorch and JAX.

gradcheck runs in slow mode with its own tolerances, in float64, on the NumPy functions in a
`torch.autograd.Function`.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import importlib.util
import platform
import statistics
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from handgrad.checking import Report, check
from handgrad.checking.repair import write_repair

try:
    import torch
except ImportError:
    torch = None

ANSWERS = {"EXPECT", "ACCEPT", "WHERE", "FIX", "SOURCE", "TRICK", "backward_fixed"}
DEFAULT = Path(__file__).parents[1] / "tests" / "checking" / "cases"
PROGRAMS = DEFAULT.with_name("programs")
SIZES, ROWS = (784, 128, 10), 32
LONGEST = 60  # seconds: where gradcheck would take longer, its time is extrapolated
SUBSETS = (1000, 4000)  # entries with which gradcheck's time is measured: all of them would take minutes
Arrays = dict[str, np.ndarray]


# The checker without one of its mechanisms.


def nothing(*_args: Any, **_options: Any) -> list[Any]:
    """Stand in for a mechanism that is switched off."""
    return []


def no_line(*_args: Any, **_options: Any) -> None:
    """Find no line."""


def never(*_args: Any, **_options: Any) -> str:
    """Call no gradient right but for something."""
    return ""


@contextlib.contextmanager
def unpatched(*_args: Any, **_options: Any) -> Iterator[None]:
    """Trace forward with the module's own names in place."""
    yield


def not_on_numpy(_function: Any) -> None:
    """Give another library's function no version that runs on NumPy's arrays."""


MECHANISMS: dict[str, list[tuple[str, Any]]] = {
    "edits": [("repair.search.small_changes", nothing)],
    "rewriting": [("repair.search.rewritings", nothing)],
    "mutations": [("diagnosis.diagnose.by_mutation", nothing)],
    "local mutations": [("diagnosis.diagnose.by_local_mutation", nothing)],
    "codes of edits": [("diagnosis.diagnose.by_repair", nothing)],
    "patterns of Jacobians": [("diagnosis.gradient_patterns.by_jacobian", nothing)],
    "first wrong line": [("check.first_wrong", no_line)],
    "gradients written in place": [
        ("repair.search.in_place", nothing),
        ("repair.search.missing_terms", nothing),
    ],
    "nearly right": [("check.nearly_right", never)],
    "patching of global names": [("forward_trace.forward_trace.traced_scope", unpatched)],
    "torch and JAX on NumPy": [
        ("interfaces.torch_functions.torch_on_numpy", not_on_numpy),
        ("interfaces.jax_functions.jax_on_numpy", not_on_numpy),
    ],
}
"""Where the checker enters each mechanism, and what stands in for it."""


def switch_off(mechanism: str) -> None:
    """Switch a mechanism off for the rest of this process."""
    for path, stand_in in MECHANISMS[mechanism]:
        module, _, name = path.rpartition(".")
        entered = importlib.import_module(f"handgrad.checking.{module}")
        assert hasattr(entered, name)
        setattr(entered, name, stand_in)


# A case, with and without its answers.


def load(path: Path) -> ModuleType:
    """Import a module from its path, whatever stands in Python's caches."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    exec(compile(path.read_text("utf-8"), str(path), "exec"), module.__dict__)
    return module


def without_answers(text: str) -> str:
    """Return a case's text without what gives its mistake away."""
    lines = text.splitlines(keepends=True)
    for node in reversed(ast.parse(text).body):
        names = {getattr(node, "name", "")} | {
            getattr(target, "id", "") for target in getattr(node, "targets", [])
        }
        if names & ANSWERS:
            del lines[node.lineno - 1 : node.end_lineno]
    return "".join(lines)


# The two checkers: each returns whether it calls a case wrong, and counts what else it says.


def by_handgrad(answers: ModuleType, path: Path, seed: int, counts: Counter[str]) -> bool | None:
    """Check a case by handgrad; None when it cannot tell."""
    case = load(path)
    try:
        report = check(case.forward, case.backward, case.inputs(np.random.default_rng(seed)), seed=seed)
    except Exception as error:  # a checker that raises has told nothing
        print(f"  {path.stem}, seed {seed}: {type(error).__name__}: {error}")
        return None
    if report.verdict == "wrong" and hasattr(answers, "EXPECT"):
        counts["named"] += named(report, answers)
        counts["repaired"] += repaired(report, answers, path)
        if report.mended is not None:
            changed = sum(line[:1] in "+-" for line in report.mended.diff.splitlines()[2:])
            counts[f"lines {changed}"] += 1
    return None if report.verdict == "cannot tell" else report.verdict != "right"


def named(report: Report, answers: ModuleType) -> bool:
    """Whether the first finding is the expected one."""
    where = [answers.WHERE] if isinstance(answers.WHERE, str) else answers.WHERE
    codes = {answers.EXPECT, *getattr(answers, "ACCEPT", [])}
    return bool(report.findings) and report.findings[0].code in codes and report.findings[0].argument in where


def repaired(report: Report, answers: ModuleType, path: Path) -> bool:
    """Whether the proved repair, written into the file, gives the right gradients."""
    if report.mended is None:
        return False
    text = path.read_text("utf-8")
    try:
        write_repair(path, report.mended)
        return all(agree(load(path), answers, np.random.default_rng([seed, 7])) for seed in range(3))
    finally:
        path.write_text(text, "utf-8")


def agree(mended: ModuleType, answers: ModuleType, generator: np.random.Generator) -> bool:
    """Whether two backwards give the same gradients at fresh inputs."""
    inputs = answers.inputs(generator)
    output = np.asarray(answers.forward(**copied(inputs)))
    upstream = generator.normal(size=output.shape).astype(output.dtype)
    with np.errstate(all="ignore"):
        ours = mended.backward(np.array(upstream), **copied(inputs))
        right = answers.backward_fixed(np.array(upstream), **copied(inputs))
    return all(
        np.allclose(ours[name], value, rtol=1e-5, atol=1e-7 * np.abs(value).max(initial=0), equal_nan=True)
        for name, value in right.items()
    )


def copied(inputs: Arrays) -> Arrays:
    return {name: np.array(value) for name, value in inputs.items()}


def by_gradcheck(answers: ModuleType, path: Path, seed: int, counts: Counter[str]) -> bool | None:
    """Check a case by PyTorch."""
    case = load(path)
    inputs = case.inputs(np.random.default_rng(seed))
    output = np.asarray(case.forward(**copied(inputs)))
    with np.errstate(all="ignore"):
        names = list(case.backward(np.ones_like(output), **copied(inputs)))
    try:
        return not gradcheck(case.forward, case.backward, inputs, names)
    except Exception:  # whatever it says is that the gradient is wrong
        return True


def gradcheck(
    forward: Callable[..., Any], backward: Callable[..., Any], inputs: Arrays, names: list[str]
) -> bool:
    """Run gradcheck on NumPy functions, with respect to some of their arguments."""
    tensors = [torch.tensor(np.asarray(inputs[name], np.float64), requires_grad=True) for name in names]

    def values(*given: torch.Tensor) -> Arrays:
        return {**inputs, **{name: one.detach().numpy() for name, one in zip(names, given, strict=True)}}

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *given: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(*given)
            return torch.tensor(np.asarray(forward(**values(*given)), np.float64))

        @staticmethod
        def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, ...]:
            gradients = backward(upstream.numpy(), **values(*ctx.saved_tensors))
            return tuple(torch.tensor(np.asarray(gradients[name], np.float64)) for name in names)

    with np.errstate(all="ignore"):
        return torch.autograd.gradcheck(Function.apply, tensors, fast_mode=False)


CHECKERS = {"handgrad": by_handgrad, "gradcheck": by_gradcheck}


def compare(folder: Path, seeds: int, every: int, checkers: dict[str, Callable[..., bool | None]]) -> None:
    """Print what the checkers report of a folder of cases."""
    paths = {kind: sorted((folder / kind).glob("*.py"))[::every] for kind in ("wrong", "right")}
    print(
        f"\n{folder.name}: {len(paths['wrong'])} wrong and {len(paths['right'])} right cases, {seeds} seeds"
    )
    heads = ("", "detected", "false alarms", "cannot tell", "named", "repaired", "lines", "seconds", "CPU")
    print("{:13}{:>12}{:>16}{:>14}{:>12}{:>13}{:>7}{:>10}{:>8}".format(*heads))
    misses: dict[str, list[str]] = {}
    for name, checker in checkers.items():
        counts: Counter[str] = Counter()
        clock = Clock()
        for kind, several in paths.items():
            for path in several:
                for seed in range(seeds):
                    before = counts["named"]
                    verdict = run(checker, path, seed, counts)
                    counts[f"{kind} {verdict}"] += 1
                    if verdict is not (kind == "wrong"):
                        misses.setdefault(f"{name}, {kind} but {said(verdict)}", []).append(path.stem)
                    elif kind == "wrong" and name == "handgrad" and counts["named"] == before:
                        misses.setdefault(f"{name}, named otherwise", []).append(path.stem)
        seconds, cpu = (taken / seeds for taken in clock.read())
        wrong, right = (len(several) * seeds for several in paths.values())
        own = [share(counts[what], wrong) if name == "handgrad" else "-" for what in ("named", "repaired")]
        lines = [
            int(what.split()[1]) for what, n in counts.items() if what.startswith("lines ") for _ in range(n)
        ]
        median = f"{statistics.median(lines):g}" if lines else "-"
        unsure = counts["wrong None"] + counts["right None"]
        print(
            f"{name:13}{share(counts['wrong True'], wrong):>12}{share(counts['right True'], right):>16}"
            f"{share(unsure, wrong + right):>14}{own[0]:>12}{own[1]:>13}{median:>7}{seconds:10.1f}{cpu:8.1f}"
        )
    for what, cases in misses.items():
        times = Counter(cases)
        print(
            f"  {what}: {', '.join(f'{case} ({n} seeds)' if n < seeds else case for case, n in times.items())}"
        )


def run(checker: Callable[..., bool | None], path: Path, seed: int, counts: Counter[str]) -> bool | None:
    """Run a checker on a copy of a case without its answers."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        copy = Path(folder) / path.name
        copy.write_text(without_answers(path.read_text("utf-8")), "utf-8")
        return checker(load(path), copy, seed, counts)


def share(part: int, whole: int) -> str:
    return f"{part} of {whole}"


def said(verdict: bool | None) -> str:
    return "cannot tell" if verdict is None else "called wrong" if verdict else "called right"


# Programs as people write them.


def programs(every: int) -> None:
    """Print what the checker reports of programs, by the library that they are written in."""
    labelled: dict[str, Any] = {}
    exec((PROGRAMS / "labels.py").read_text("utf-8"), labelled)
    counts: dict[str, Counter[str]] = {}
    for label in labelled["LABELS"][::every]:
        names: dict[str, Any] = {"__name__": label.name, "np": np, "rng": np.random.default_rng(8)}
        library = {"torch.autograd.Function": "PyTorch", "jax": "JAX"}.get(label.shape, "NumPy")
        if label.shape == "torch" or (library == "NumPy" and label.name not in labelled["GIVEN"]):
            continue  # scripts, whose gradients no function has
        count = counts.setdefault(library, Counter())
        clock = Clock()
        try:
            report = check(*given(label, names, labelled["GIVEN"]))
        except Exception as error:  # a library that is not there, or a checker that has told nothing
            print(f"  {label.name}: {type(error).__name__}: {error}")
            continue
        count["CPU"] += clock.read()[1]
        if not label.codes and label.remark:  # right, and wrong by the contract
            continue
        count["wrong" if label.codes else "right"] += 1
        count["detected" if label.codes else "false alarms"] += report.verdict in ("wrong", "right, but")
        count["named"] += bool(label.codes and report.findings and report.findings[0].code in label.codes)
        count["repaired"] += report.mended is not None
    heads = ("", "detected", "false alarms", "named", "repaired", "CPU")
    print("\nprograms\n{:13}{:>12}{:>16}{:>12}{:>13}{:>8}".format(*heads))
    for library, n in counts.items():
        print(
            f"{library:13}{share(n['detected'], n['wrong']):>12}{share(n['false alarms'], n['right']):>16}"
            f"{share(n['named'], n['wrong']):>12}{share(n['repaired'], n['wrong']):>13}{n['CPU']:8.1f}"
        )


def given(label: Any, names: dict[str, Any], texts: dict[str, str]) -> tuple[Any, ...]:
    """Run a program, and return what its author gives to `check`."""
    path = PROGRAMS / f"{label.name}.py"
    exec(compile(path.read_text("utf-8"), path, "exec"), names)
    exec(label.call, names)
    if label.shape == "torch.autograd.Function":
        base = torch.autograd.Function  # which a program may import by its name
        function = next(v for v in names.values() if isinstance(v, type) and base in v.__bases__)
        return function, None, eval(f"({label.loss.partition('(')[2][:-1]},)", names)
    if label.shape == "jax":
        return (
            eval(label.loss.partition("(")[0], names),
            None,
            {name: names[name] for name in label.gradients},
        )
    arguments: tuple[Any, ...] = eval(texts[label.name], names)
    return arguments


# Speed.


def network(generator: np.random.Generator) -> tuple[Callable[..., Any], Callable[..., Arrays], Arrays]:
    """Return the loss of a network as a function of its parameters, its backward, and parameters."""
    x, t = generator.normal(size=(ROWS, SIZES[0])), np.eye(SIZES[2])[generator.integers(SIZES[2], size=ROWS)]

    def forward(W1: np.ndarray, b1: np.ndarray, W2: np.ndarray, b2: np.ndarray) -> Any:
        z = np.maximum(x @ W1 + b1, 0) @ W2 + b2
        z = z - z.max(axis=1, keepdims=True)
        return (np.log(np.exp(z).sum(axis=1)) - (z * t).sum(axis=1)).mean()

    def backward(
        upstream: np.ndarray, W1: np.ndarray, b1: np.ndarray, W2: np.ndarray, b2: np.ndarray
    ) -> Arrays:
        a = np.maximum(x @ W1 + b1, 0)
        z = a @ W2 + b2
        p = np.exp(z - z.max(axis=1, keepdims=True))
        dz = upstream * (p / p.sum(axis=1, keepdims=True) - t) / ROWS
        da = dz @ W2.T * (a > 0)
        return {"W1": x.T @ da, "b1": da.sum(axis=0), "W2": a.T @ dz, "b2": dz.sum(axis=0)}

    shapes = {"W1": SIZES[:2], "b1": SIZES[1:2], "W2": SIZES[1:], "b2": SIZES[2:]}
    return forward, backward, {name: 0.05 * generator.normal(size=shape) for name, shape in shapes.items()}


def speed() -> None:
    """Print how long both take for a whole network, and for the same with a mistake."""
    forward, backward, inputs = network(np.random.default_rng(0))
    entries = sum(value.size for value in inputs.values())
    print(f"\nnetwork {' → '.join(map(str, SIZES))}, batch {ROWS}, float64: {entries:,} parameters")
    print(f"{'':24}{'seconds':>10}{'CPU':>8}")

    def one_wrong(upstream: np.ndarray, **values: np.ndarray) -> Arrays:
        gradients = backward(upstream, **values)
        gradients["W1"][400, 60] *= 1.001
        return gradients

    ours, _ = timed("handgrad.check", lambda: check(forward, backward, inputs).verdict, 3)
    timed("  one entry off by 1e-3", lambda: worst_entry(check(forward, one_wrong, inputs)), 1)

    few, many = SUBSETS
    gradcheck_of_some(forward, backward, inputs, few)  # what PyTorch does at its first call is not counted
    fewer, more = (
        timed(
            f"gradcheck, {some:,} of W1",
            lambda some=some: gradcheck_of_some(forward, backward, inputs, some),
            3,
        )
        for some in SUBSETS
    )
    theirs, cpu = (a + (entries - few) * (b - a) / (many - few) for a, b in zip(fewer, more, strict=True))
    if theirs > LONGEST:
        print(f"{'gradcheck':24}{theirs:10.1f}{cpu:8.1f}  extrapolated from the two lines above")
    else:
        theirs, cpu = timed("gradcheck", lambda: gradcheck(forward, backward, inputs, list(inputs)), 1)
    print(f"{'ratio':24}{theirs / ours:10.1f}")


def timed(what: str, function: Callable[[], object], times: int) -> tuple[float, float]:
    """Print and return the shortest time that something takes, and its processor time."""
    taken = []
    for _ in range(times):
        clock = Clock()
        said = function()
        taken.append(clock.read())
    seconds, cpu = min(taken)
    print(f"{what:24}{seconds:10.1f}{cpu:8.1f}  {said}")
    return seconds, cpu


def worst_entry(report: Report) -> str:
    return f"{report.verdict}, W1{list(report.findings[0].entry)}" if report.findings else report.verdict


def gradcheck_of_some(
    forward: Callable[..., Any], backward: Callable[..., Arrays], inputs: Arrays, some: int
) -> bool:
    """Run gradcheck with respect to the first entries of W1 alone."""

    def whole(part: np.ndarray) -> Arrays:
        W1 = inputs["W1"].copy()
        W1.flat[:some] = part
        return {**inputs, "W1": W1}

    return gradcheck(
        lambda part: forward(**whole(part)),
        lambda upstream, part: {"part": backward(upstream, **whole(part))["W1"].ravel()[:some]},
        {"part": inputs["W1"].ravel()[:some].copy()},
        ["part"],
    )


class Clock:
    """Measures from where it is made: seconds, and seconds of the processor."""

    def __init__(self) -> None:
        self.started = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        """Return both."""
        return time.perf_counter() - self.started[0], time.process_time() - self.started[1]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="handgrad.check and torch.autograd.gradcheck, side by side")
    parser.add_argument("folder", nargs="*", type=Path, default=[DEFAULT])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", choices=["cases", "programs", "speed"])
    parser.add_argument("--every", type=int, default=1, help="check every so many cases only")
    parser.add_argument("--without", choices=MECHANISMS, help="switch a mechanism off")
    options = parser.parse_args()
    version = torch.__version__ if torch else "not installed"
    print(
        f"numpy {np.__version__}, torch {version}, {platform.machine()}, Python {platform.python_version()}"
    )
    checkers = CHECKERS if torch and not options.without else {"handgrad": by_handgrad}
    if options.without:
        switch_off(options.without)
        print(f"without {options.without}")
    if options.only in (None, "cases"):
        for folder in options.folder:
            compare(folder, options.seeds, options.every, checkers)
    if options.only in (None, "programs"):
        programs(options.every)
    if options.only in (None, "speed") and torch:
        speed()


if __name__ == "__main__":
    main()

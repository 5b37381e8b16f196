"""Mutation testing: change one place of the source at a time, and see whether a test fails.

    python tests/mutation/run.py                 # every area of areas.toml
    python tests/mutation/run.py rules readers   # these only
    python tests/mutation/run.py --show rules/linear.py

Needs Cosmic Ray (`pip install -e '.[mutation]'`), which makes the mutants. Each is written into a copy of the checkout
and tested there in a fresh process, because the text of rules is read from their files. ``areas.toml`` says which
tests hold which files, and how many mutants of a file are tried. Of the changes possible at one place one is chosen,
and of the places as many as the area says, by a digest of the line and the change: the same ones on every machine,
and most of them again when other lines have changed.

What came out is kept in build/mutation.jsonl. Mutants that were killed are not tried again, unless that file is
removed; so a run that was stopped goes on where it was, and one with new tests tries what survived. At the end the
table in results.md is written. The exit code is 1 if a mutant survived that survivors.toml does not explain.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import difflib
import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from removing import RemoveCall, RemoveStatement

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = Path("src/handgrad")
LOG = ROOT / "build" / "mutation.jsonl"

LEFT_OUT = re.compile(
    "Variable(Replacer|Inserter)"  # they need to be told names
    "|_(Eq|NotEq|Lt|LtE|Gt|GtE)_Is|_Is(Not)?_(Lt|LtE|Gt|GtE|Eq|NotEq)"  # Python warns, or fails at once
    "|_(Add|Sub|Mul|Div|FloorDiv|Mod|Pow)_(.Shift|Bit.*)"  # floats have no bits: they fail at once
)
GIGABYTES = 12
"""What a mutant may ask for: a size may have become a power."""
PATIENCE = 180
"""Seconds that tests may take in all, beside the limit on the processor's time: a mutant may wait for ever."""

NO_TESTS = 5
"""Pytest's exit code where a selection by name selects none."""

Outcome = str  # killed, timed out or survived


@dataclass(frozen=True)
class Mutant:
    """One change of one file: its name is the line before and after, and where that is."""

    file: str
    where: str
    old: str
    new: str
    text: str

    @property
    def name(self) -> str:
        """What it is called in the log and in survivors.toml."""
        return f"{self.file} {self.where}: {self.old} ⟶ {self.new}"

    @property
    def function(self) -> str:
        """The function that is changed, by the name that its tests know: a backward is its rule's."""
        return self.where.split(".")[-1].removesuffix("_backward")


def operators() -> dict[str, Callable[[], Any]]:
    """Return the ways to change a file, by name."""
    named = {name: get_operator(name) for name in operator_names() if not LEFT_OUT.search(name)}
    return {**named, "Remove/Statement": RemoveStatement, "Remove/Call": RemoveCall}


def mutants(file: str, most: int) -> list[Mutant]:
    """Return mutants of a file in the order in which they are tried, one for each place and kind of change."""
    text = (ROOT / PACKAGE / file).read_text()
    lines, nodes, meaning = text.splitlines(), list(ast_nodes(get_ast(text))), what_runs(text)
    candidates = []
    for name, make in operators().items():
        places = [place for node in nodes for place in make().mutation_positions(node)]
        for occurrence, place in enumerate(places):
            line = lines[place[0][0] - 1]
            key = f"{file} {line} {place[0][1]} {place[1][1]} {name}"
            digest = hashlib.sha256(key.encode()).hexdigest()
            candidates.append((digest, occurrence, name, (place, name.split("_")[0])))
    found: dict[str, Mutant] = {}
    done = set()
    for _, occurrence, name, at in sorted(candidates):
        if len(found) == most:
            break
        changed = None if at in done else mutate_code(text, operators()[name](), occurrence)
        if changed is not None and what_runs(changed) not in (None, meaning):
            mutant = compared(file, text, changed)
            found.setdefault(mutant.name, mutant)
            done.add(at)
    return list(found.values())


def what_runs(text: str) -> str | None:
    """Return the file's meaning without types and kinds of arguments, or None where it is no Python."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        for types in {"annotation", "returns"} & set(node._fields):
            setattr(node, types, None)
        if isinstance(node, ast.arguments):  # the star before names is taken for a product
            node.args = [*node.posonlyargs, *node.args, *node.kwonlyargs]
            node.defaults += filter(None, node.kw_defaults)
            node.posonlyargs = node.kwonlyargs = node.kw_defaults = []
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            node.test, node.body = ast.Constant(None), []
    return ast.dump(tree)


def compared(file: str, text: str, changed: str) -> Mutant:
    """Name a change by the lines that differ and the function they are in."""
    before, after = text.splitlines(), changed.splitlines()
    edits = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    _, first, last, start, stop = next(edit for edit in edits if edit[0] != "equal")
    old, new = (
        " ".join(filter(None, map(str.strip, part))) for part in (before[first:last], after[start:stop])
    )
    inside = [
        node for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.lineno <= last <= (node.end_lineno or 0)
    ]  # fmt: skip
    where = ".".join(node.name for node in inside) or "module"
    return Mutant(file, where, old, new or "(removed)", changed)


class Copy:
    """A copy of the checkout, to be changed and tested."""

    def __init__(self, folder: Path, python: Sequence[str]) -> None:
        self.folder, self.python, self.times = folder, python, dict[str, float]()
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        for name in filter(None, listed.stdout.split("\0")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        compileall.compile_dir(folder / "src", quiet=1)
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",  # a mutant's would be taken for the next one's
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # importing them takes longer than most tests
            "CI": "1",  # Hypothesis then draws the same examples each time
        }

    def test(self, tests: str, seconds: int) -> tuple[Outcome, float]:
        """Run one selection of tests; return what came out, and the seconds of the processor it took."""
        options = ["-x", "-q", "-p", "no:cacheprovider", "--assert=plain"]

        def limit() -> None:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored in what a shell runs in the background
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
            resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30, GIGABYTES << 30))

        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        running = subprocess.Popen(
            [*self.python, "-m", "pytest", *options, *shlex.split(tests)],
            cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            preexec_fn=limit, start_new_session=True,
        )  # fmt: skip
        try:
            self.output, _ = running.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            self.output, _ = running.communicate()
            return "timed out", PATIENCE
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if running.returncode in (-signal.SIGXCPU, 128 + signal.SIGXCPU) or taken >= seconds:
            return "timed out", taken
        return ("survived" if running.returncode in (0, NO_TESTS) else "killed"), taken

    def usual(self, tests: str) -> float:
        """Return how long a selection of tests takes without any mutant; they must pass."""
        if tests not in self.times:
            outcome, self.times[tests] = self.test(tests.format(name="''"), PATIENCE)
            if outcome != "survived":
                sys.exit(f"without any mutant, pytest {tests} fails:\n{self.output[-3000:]}")
        return self.times[tests]

    def try_on(self, mutant: Mutant, stages: Sequence[str]) -> Outcome:
        """Test a mutant by one selection of tests after the other, until one notices it."""
        path = self.folder / PACKAGE / mutant.file
        sound = path.read_text()
        for tests in stages:
            seconds = int(15 + 5 * self.usual(tests))
            path.write_text(mutant.text)
            Path(cache_from_source(str(path))).unlink(missing_ok=True)
            outcome, _ = self.test(tests.format(name=mutant.function), seconds)
            path.write_text(sound)
            if outcome != "survived":
                return outcome
        return "survived"


def areas() -> Iterator[tuple[str, str, int, list[str]]]:
    """Yield each file with its area, how many of its mutants are tried, and the tests that hold it."""
    seen: set[str] = set()
    for area in tomllib.loads((HERE / "areas.toml").read_text())["area"]:
        for pattern in area["files"]:
            for path in sorted((ROOT / PACKAGE).glob(pattern)):
                file = path.relative_to(ROOT / PACKAGE).as_posix()
                if file not in seen:
                    seen.add(file)
                    yield area["name"], file, area["each"], area["tests"]


def outcomes() -> dict[str, Outcome]:
    """Return what came of each mutant that was tried, as the log has it."""
    lines = LOG.read_text().splitlines() if LOG.exists() else []
    return {record["mutant"]: record["outcome"] for record in map(json.loads, lines)}


def stands(name: str) -> bool:
    """Whether the line that a mutant changes is still in its file."""
    file, (_, old) = name.split()[0], name.split(" ⟶ ")[0].split(": ", 1)
    path = ROOT / PACKAGE / file
    return path.exists() and " ".join(old.split()) in " ".join(path.read_text().split())


def survivors() -> dict[str, dict[str, str]]:
    """Return what survived once: ``killed_by`` names the test made for it, ``why`` explains it."""
    listed = tomllib.loads((HERE / "survivors.toml").read_text()).get("survivor", [])
    return {entry["mutant"]: entry for entry in listed}


def run(chosen: Sequence[str], python: Sequence[str]) -> None:
    """Try the mutants of the areas or files chosen; the log has what came of them."""
    LOG.parent.mkdir(exist_ok=True)
    there = {name for area, file, _, _ in areas() for name in (area, file)}
    if unknown := set(chosen) - there:
        sys.exit(f"{min(unknown)} is no area and no file of areas.toml")
    tried, known = outcomes(), survivors()
    with tempfile.TemporaryDirectory(prefix="handgrad-mutation-") as folder:
        copy = Copy(Path(folder), python)
        for area, file, each, selections in areas():
            tests = [tests.format(name="{name}", file=Path(file).stem) for tests in selections]
            for mutant in mutants(file, each) if not chosen or {area, file} & set(chosen) else ():
                before = tried.get(mutant.name)
                if before not in (None, "survived") or (before and "why" in known.get(mutant.name, {})):
                    continue
                outcome = copy.try_on(mutant, tests)
                with LOG.open("a") as log:
                    log.write(
                        json.dumps({"mutant": mutant.name, "outcome": outcome}, ensure_ascii=False) + "\n"
                    )
                print(f"{outcome:<10} {mutant.name}", flush=True)


def report() -> int:
    """Write results.md from the log; return how many mutants survived without an explanation."""
    known, area_of = survivors(), {file: area for area, file, *_ in areas()}
    rows = {area: [0] * 7 for area in (*area_of.values(), "all")}
    tried: set[str] = set()
    for name, outcome in outcomes().items():
        file, entry = name.split()[0], known.get(name, {})
        if not stands(name):
            continue
        tried.add(file)
        survived = outcome == "survived"
        counts = (
            1,
            outcome == "killed",
            outcome == "timed out",
            survived or "killed_by" in entry,
            not survived and "killed_by" in entry,
            survived and "why" in entry,
            survived and "why" not in entry,
        )
        for area in (area_of[file], "all"):
            rows[area] = [sum(pair) for pair in zip(rows[area], counts, strict=True)]
        if counts[-1]:
            print(f"not explained: {name}")
    lines = []
    for area, row in rows.items():
        files = [file for file in area_of if area in (area_of[file], "all")]
        lines.append(f"| {area} | {len(tried & {*files})} of {len(files)} | {' | '.join(map(str, row))} |\n")
    (HERE / "results.md").write_text(RESULTS + "".join(lines))
    return rows["all"][-1]


RESULTS = """# Mutation testing

Written by `python tests/mutation/run.py`. A mutant is one change of one place; it is killed when a test fails, times
out when it takes five times as long as the tests do, and else survives. What survived when the tests were first tried
was killed by a new or sharper test, or is explained in survivors.toml. Files that only import have no mutants.

| area | files tried | mutants | killed | timed out | survived at first | of these killed now | of these explained | left |
|:---|---:|---:|---:|---:|---:|---:|---:|---:|
"""


def main() -> int:
    """Try what is chosen, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chosen", nargs="*", help="areas, or files below src/handgrad (all)")
    parser.add_argument("--show", action="store_true", help="print the mutants and what came of them")
    parser.add_argument(
        "--python", default=sys.executable, help="the command that starts Python for the tests"
    )
    given = parser.parse_args()
    if given.show:
        tried = outcomes()
        for area, file, each, _ in areas():
            if area in given.chosen or file in given.chosen:
                for mutant in mutants(file, each):
                    print(f"{tried.get(mutant.name, 'not tried'):<10} {mutant.name}")
        return 0
    run(given.chosen, shlex.split(given.python))
    return int(report() > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Wrong backward passes, each repaired in its own file and compared with the right one on other inputs."""

import importlib.util
import time
from dataclasses import replace
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

from handgrad.checking.forward_trace import trace_forward
from handgrad.checking.gradient_code import write_gradient
from handgrad.checking.repair.sandbox import Target
from handgrad.checking.repair.search import repair, write_repair
from handgrad.checking.subject import Subject, copy_of

CASES = sorted((Path(__file__).parent / "repair_cases").glob("*.py"))
SMALL, MOSTLY = 4, 0.8  # changed lines of a diff, in that share of the cases at least


def load(path):
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def target_at(subject, right, inputs, seed):
    rng = np.random.default_rng(seed)
    upstream = [rng.normal(size=output.shape) for output in subject.run_forward(inputs)]
    gradients = replace(subject, backward=right).run_backward(upstream, inputs)
    slack = {name: 1e-8 * np.abs(value).max() for name, value in gradients.items()}
    return Target(inputs, upstream, gradients, slack)


def is_right(candidate, case, right):
    for seed in range(3):
        inputs = copy_of(
            {name: np.asarray(v) for name, v in case.inputs(np.random.default_rng(seed)).items()}
        )
        target = target_at(candidate, right, inputs, seed)
        given = copy_of(inputs)
        found = candidate.run_backward(target.upstream, given, fresh=False)
        if found.keys() != target.gradients.keys() or not all(
            target.met_by(name, found[name]) for name in found
        ):
            return False
        if not all(np.array_equal(given[name], inputs[name]) for name in inputs):
            return False
    return True


@pytest.fixture(scope="module")
def repaired(tmp_path_factory):
    """Return a function that repairs a copy of a case, each case once."""
    folder = tmp_path_factory.mktemp("cases")
    known = {}

    def of(path):
        if path not in known:
            text, marker, answer = path.read_text().partition("\n\ndef backward_fixed")
            copy = folder / path.name
            copy.write_text(text)
            case, right = load(copy), load(path).backward_fixed
            subject = Subject.of(case.forward, case.backward, case.inputs(np.random.default_rng(7)))
            functions = [value for value in vars(case).values() if isinstance(value, FunctionType)]

            def write(arguments):
                def forward(values):
                    return case.forward(*values.values()) if subject.positional else case.forward(**values)

                return write_gradient(trace_forward(forward, subject.inputs, functions), arguments)

            target = target_at(subject, right, subject.inputs, 5)
            started = time.thread_time()
            found = repair(subject, target, lambda candidate: is_right(candidate, case, right), write=write)
            known[path] = case, right, found, time.thread_time() - started
            assert marker
            assert answer
        return known[path]

    return of


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_repaired_file_is_right(path, repaired):
    case, right, found, _ = repaired(path)
    assert found is not None
    write_repair(found.path, found)
    mended = load(found.path)
    subject = Subject.of(mended.forward, mended.backward, case.inputs(np.random.default_rng(8)))
    assert is_right(subject, case, right)
    assert found.description.startswith("line ")
    assert found.diff.startswith(f"--- {path.name}\n+++ {path.name}\n")


def test_most_repairs_change_a_few_lines(repaired):
    """Whether a small edit or the gradient written anew: what is right in the user's lines stays."""
    diffs = [repaired(path)[2].diff.splitlines()[2:] for path in CASES]
    changed = [sum(line[:1] in "+-" for line in diff) for diff in diffs]
    assert sum(lines <= SMALL for lines in changed) >= MOSTLY * len(CASES), sorted(changed)


def test_a_repair_takes_a_second_or_two(repaired):
    assert np.median([repaired(path)[3] for path in CASES]) < 2

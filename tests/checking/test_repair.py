"""What a repair leaves alone, says, refuses and survives."""

import importlib.util
import itertools
import random
import resource
import signal
import sys
import threading
import time

import numpy as np
import pytest

from handgrad import check
from handgrad.checking.gradient_code import GradientCode
from handgrad.checking.repair import guard
from handgrad.checking.repair.guard import Guard, OutOfTimeError
from handgrad.checking.repair.module_source import SourceError
from handgrad.checking.repair.sandbox import Target
from handgrad.checking.repair.search import repair, write_repair
from handgrad.checking.subject import CheckError, DeadlineError, Subject, within

X, W, U = np.arange(6.0).reshape(2, 3) / 7 - 0.3, np.arange(12.0).reshape(3, 4) / 9 - 0.6, np.ones((2, 4)) / 3

LINEAR = """import numpy as np


def forward(x, W):
    return x @ W


def backward(grad_output, x, W):
    {body}
"""


def load(path, text):
    path.write_bytes(text.encode())
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def mended(tmp_path, text, right=None, inputs=None, upstream=U, **options):
    """Repair a module's backward; without `right` its forward is ``x @ W``."""
    module = load(tmp_path / "layer.py", text)
    subject = Subject.of(module.forward, module.backward, inputs or {"x": X, "W": W})
    right = right or {"x": upstream @ W.T, "W": X.T @ upstream}
    target = Target(subject.inputs, [upstream], right, dict.fromkeys(right, 1e-9))
    return repair(subject, target, lambda candidate: True, **options)


def changed_lines(found):
    lines = found.diff.splitlines()[3:]
    return [line[1:].strip() for line in lines if line[:1] == "-"], [
        line[1:].strip() for line in lines if line[:1] == "+"
    ]


# ------------------------------------------------------------------ the text


def test_only_the_edited_expression_changes(tmp_path):
    body = """# Größe: Σ über die Zeilen   (columns count bytes, text counts characters)
    é = 1e-5;  dx = grad_output   @   W.T   # keep  me
    return {   "x":dx ,
               "W": grad_output.T @ x,  # the shape is wrong
             }"""
    found = mended(tmp_path, LINEAR.format(body=body))
    assert changed_lines(found) == (
        ['"W": grad_output.T @ x,  # the shape is wrong'],
        ['"W": x.T @ grad_output,  # the shape is wrong'],
    )
    assert found.description == "line 12: `grad_output.T @ x` becomes `x.T @ grad_output`"
    assert found.kind == "edit"


def test_numbers_in_the_kept_part_keep_their_spelling(tmp_path):
    found = mended(
        tmp_path, LINEAR.format(body='return {"x": (1e-5 + grad_output @ W - 1E-05), "W": x.T @ grad_output}')
    )
    assert found is None or "1E-05" in found.text
    body = 'return {"x": -(grad_output * 1_0e-1 @ W.T), "W": x.T @ grad_output}'
    assert "grad_output * 1_0e-1 @ W.T" in mended(tmp_path, LINEAR.format(body=body)).text


def test_line_ends_of_another_system_stay(tmp_path):
    body = 'd = grad_output.copy()\n    d *= 2\n    return {"x": d @ W.T, "W": x.T @ d}'
    found = mended(tmp_path, LINEAR.format(body=body).replace("\n", "\r\n"))
    assert "\r\n" in found.text
    assert "\n" not in found.text.replace("\r\n", "")
    write_repair(tmp_path / "layer.py", found)
    assert (tmp_path / "layer.py").read_bytes().count(b"\r\n") == found.text.count("\n")


def test_a_statement_that_is_left_out_takes_its_line_along(tmp_path):
    body = 'd = grad_output.copy()\n    d *= 2  # twice\n    return {"x": d @ W.T, "W": x.T @ d}'
    found = mended(tmp_path, LINEAR.format(body=body))
    assert changed_lines(found) == (["d *= 2  # twice"], [])
    assert found.description == "line 10: `d *= 2` is left out"


def test_two_mistakes_are_mended_one_after_the_other(tmp_path):
    body = 'dx = grad_output @ W.T + 1\n    dW = grad_output.T @ x\n    return {"x": dx, "W": dW}'
    found = mended(tmp_path, LINEAR.format(body=body))
    assert changed_lines(found)[1] == ["dx = grad_output @ W.T", "dW = x.T @ grad_output"]
    assert "line 9:" in found.description
    assert "line 10:" in found.description


def test_numpy_may_have_another_name(tmp_path):
    text = "import numpy as N\n\n\ndef forward(a, b):\n    return N.outer(a, b)\n\n\n"
    text += "def backward(grad_output, a, b):\n    return grad_output @ b, N.cosh(a) @ grad_output\n"
    a, b, upstream = np.array([0.3, -0.7]), np.array([0.2, 0.5, -0.9]), np.arange(6.0).reshape(2, 3) - 2
    found = mended(
        tmp_path, text, {"a": upstream @ b, "b": a @ upstream}, {"a": a, "b": b}, upstream=upstream
    )
    assert changed_lines(found)[1] == ["return grad_output @ b, a @ grad_output"]


# ------------------------------------------------------------------ what must hold


def test_forward_is_not_bent_to_the_backward(tmp_path):
    text = (
        "import numpy as np\n\n\ndef scale(v):\n    return 2 * v\n\n\ndef forward(x, W):\n    return scale(x) @ W\n\n\n"
        'def backward(grad_output, x, W):\n    return {"x": grad_output @ W.T, "W": scale(x).T @ grad_output}\n'
    )
    found = mended(tmp_path, text, {"x": 2 * U @ W.T, "W": 2 * X.T @ U})
    assert "    return 2 * v\n" in found.text
    assert "return scale(x) @ W\n" in found.text


def test_what_is_not_proved_is_not_returned(tmp_path):
    module = load(
        tmp_path / "layer.py", LINEAR.format(body='return {"x": grad_output @ W, "W": x.T @ grad_output * 2}')
    )
    subject = Subject.of(module.forward, module.backward, {"x": X, "W": W[:, :3]})
    right = {"x": U[:, :3] @ W[:, :3].T, "W": X.T @ U[:, :3]}
    asked = []
    target = Target(subject.inputs, [U[:, :3]], right, dict.fromkeys(right, 1e-9))
    assert repair(subject, target, lambda candidate: asked.append(candidate), budget_s=1.0) is None
    assert asked


def test_inputs_that_are_changed_are_part_of_the_mistake(tmp_path):
    body = 'W -= 0.1 * x.T @ grad_output\n    return {"x": grad_output @ W.T, "W": x.T @ grad_output}'
    found = mended(tmp_path, LINEAR.format(body=body))
    assert changed_lines(found) == (["W -= 0.1 * x.T @ grad_output"], [])


def test_the_users_module_and_the_session_stay_as_they_were(tmp_path):
    text = (
        "import numpy as np\n\nSEEN = []\nTABLE = np.ones(3)\n\n\n"
        "def forward(x, W):\n    SEEN.append(1)\n    return x @ W\n\n\n"
        "def backward(grad_output, x, W):\n    SEEN.append(2)\n    TABLE[0] += 1\n    print('noise')\n"
        "    np.random.uniform()\n"
        '    return {"x": -grad_output @ W.T, "W": x.T @ grad_output}\n'
    )
    module = load(tmp_path / "layer.py", text)
    subject = Subject.of(module.forward, module.backward, {"x": X, "W": W})
    before = module.backward, list(module.SEEN), module.TABLE.copy()
    random_numbers, handler = np.random.get_state()[1].copy(), signal.getsignal(signal.SIGALRM)  # noqa: NPY002
    right = {"x": U @ W.T, "W": X.T @ U}
    found = repair(
        subject, Target(subject.inputs, [U], right, dict.fromkeys(right, 1e-9)), lambda candidate: True
    )
    assert found is not None
    assert module.backward is before[0]
    # What the calls do that look for the author's functions is the user's own doing.
    assert module.SEEN[len(before[1]) :] in ([1, 1, 2], [1, 1, 2, 1])
    assert np.array_equal(module.TABLE, before[2] + [1, 0, 0])
    assert np.array_equal(np.random.get_state()[1], random_numbers)  # noqa: NPY002
    assert signal.getsignal(signal.SIGALRM) is handler
    assert np.array_equal(subject.inputs["x"], X)


def test_edits_that_never_end_or_fill_the_memory_are_survived(tmp_path):
    body = """total = np.zeros_like(W)
    k = len(x)
    while k > 0:
        k -= 1
        total = total + np.outer(x[k], grad_output[k])
    pad = np.zeros(10 ** 3)  # 3 * 3 zeros more are 8 gigabytes
    return {"x": grad_output @ W.T + pad.sum(), "W": 3 * total}"""
    started = time.monotonic()
    found = mended(tmp_path, LINEAR.format(body=body), budget_s=3.0)
    assert changed_lines(found)[1] == ['return {"x": grad_output @ W.T + pad.sum(), "W": total}']
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("allowed", [2 << 30, 6 << 30])
def test_candidates_get_a_few_gigabytes_and_no_more_than_the_user_has(allowed):
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = guard._address_space()
    resource.setrlimit(resource.RLIMIT_AS, (used + allowed, hard))
    try:
        with Guard().search():
            inside, _ = resource.getrlimit(resource.RLIMIT_AS)
        assert resource.getrlimit(resource.RLIMIT_AS) == (used + allowed, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert inside <= used + min(allowed, guard.MEMORY) + (1 << 28)


def test_state_that_forward_keeps_is_kept_for_candidates(tmp_path):
    text = (
        "import numpy as np\n\nCACHE = {}\n\n\ndef forward(x, W):\n    CACHE['x'] = x\n    return x @ W\n\n\n"
        'def backward(grad_output, x, W):\n    return {"x": grad_output @ W.T, "W": -CACHE["x"].T @ grad_output}\n'
    )
    assert changed_lines(mended(tmp_path, text))[1] == [
        'return {"x": grad_output @ W.T, "W": CACHE["x"].T @ grad_output}'
    ]


def test_objects_of_the_module_take_the_edited_methods(tmp_path):
    text = (
        "import numpy as np\n\n\nclass Layer:\n    def forward(self, x, W):\n        self.x = x\n        return x @ W\n\n"
        "    def backward(self, g, W):\n        return g @ W.T, g.T @ self.x\n\n\nLAYERS = [Layer()]\n\n\n"
        "def forward(x, W):\n    return LAYERS[0].forward(x, W)\n\n\n"
        "def backward(grad_output, x, W):\n    LAYERS[0].forward(x, W)\n    return LAYERS[0].backward(grad_output, W)\n"
    )
    assert changed_lines(mended(tmp_path, text))[1] == ["return g @ W.T, self.x.T @ g"]


def test_what_cannot_be_copied_stays_the_users(tmp_path):
    """A lock, a generator that is running, a file, a module, an object that refuses, a list that holds itself."""
    text = (
        "import sys\nimport threading\n\nimport numpy as np\n\n\nclass Shy:\n    def __deepcopy__(self, memo):\n"
        "        raise RuntimeError('no')\n\n\n"
        "LOCKS = {'a': threading.Lock()}\nKEPT = [iter(int, 1), (n for n in 'ab'), sys.__stdout__, np, Shy()]\n"
        "SHY = Shy()\nLOOP = [1]\nLOOP.append(LOOP)\n\n\n"
        "def forward(x, W):\n    with LOCKS['a']:\n        return x @ W\n\n\n"
        "def backward(grad_output, x, W):\n    with LOCKS['a']:\n        KEPT[2].writable()\n"
        "        return {'x': grad_output @ W.T * LOOP[1][0], 'W': -x.T @ grad_output}\n"
    )
    found = mended(tmp_path, text)
    assert changed_lines(found)[1] == ["return {'x': grad_output @ W.T * LOOP[1][0], 'W': x.T @ grad_output}"]


# ------------------------------------------------------------------ written anew


def test_lines_are_the_last_resort_and_use_what_is_there(tmp_path):
    body = """h = np.tanh(x)
    d = 1.7 ** grad_output
    return {"x": np.cosh(d).sum() * x, "W": h.T @ grad_output}"""
    text = LINEAR.format(body=body).replace("return x @ W", "return np.tanh(x) @ W")
    written = GradientCode(
        (
            "v1 = np.tanh(x)",
            "d = grad_output @ W.T",
            "d *= 1 - v1 ** 2",
            "e = np.zeros_like(d)",
            "e[:] = d",
            "dx = 1 * e",
        ),
        {"x": "dx"},
    )
    found = mended(
        tmp_path,
        text,
        {"x": U @ W.T * (1 - np.tanh(X) ** 2), "W": np.tanh(X).T @ U},
        write=lambda arguments: written if arguments == ["x"] else None,
        budget_s=0.0,
    )
    assert found.kind == "rewritten"
    assert changed_lines(found) == (
        ["d = 1.7 ** grad_output", 'return {"x": np.cosh(d).sum() * x, "W": h.T @ grad_output}'],
        [
            "d_ = grad_output @ W.T",
            "d_ *= 1 - h ** 2",
            "e = np.zeros_like(d_)",
            "e[:] = d_",
            "dx = 1 * e",
            'return {"x": dx, "W": h.T @ grad_output}',
        ],
    )
    assert found.description == "line 11: the gradient of `x` is written anew, in 5 lines"


def test_what_was_mended_by_chance_is_written_anew_with_the_rest(tmp_path):
    """Of two rows, `2 * ` is right and `len(x) * ` too; what is written after the edit can then not be proved."""
    text = LINEAR.replace("(x, W)", "(x, W, b)").replace("x, W):\n    {", "x, W, b):\n    {")
    # no number to take from forward, and a square, whose derivative may have a 2
    text = text.replace("return x @ W", "return sum(np.square(1.0) * (x @ W + b) for _ in x)")
    body = 'return {"x": 3 * grad_output @ W.T, "W": np.cosh(x).T @ grad_output, "b": len(x) * grad_output.sum(axis=0)}'
    module = load(tmp_path / "layer.py", text.format(body=body))
    lines = {"x": "dx = anew @ W.T", "W": "dW = x.T @ anew"}

    def write(arguments):
        own = [lines[name] for name in arguments if name in lines]
        results = {name: f"d{name}" for name in arguments}
        return GradientCode(("anew = len(x) * grad_output", *own), results) if "b" not in arguments else None

    def target_at(rows):
        x, upstream = np.resize(X, (rows, 3)), np.resize(U, (rows, 4)) * np.arange(1, 5)
        right = {"x": rows * upstream @ W.T, "W": rows * x.T @ upstream, "b": rows * upstream.sum(axis=0)}
        return Target({"x": x, "W": W, "b": np.ones(4)}, [upstream], right, dict.fromkeys(right, 1e-9))

    def prove(candidate):
        other = target_at(5)
        gradients = candidate.run_backward(other.upstream, other.inputs)
        written = "anew" in candidate.backward.__code__.co_varnames
        return written and all(other.met_by(name, gradient) for name, gradient in gradients.items())

    target = target_at(2)
    found = repair(Subject.of(module.forward, module.backward, target.inputs), target, prove, write=write)
    assert found.description == "line 9: the gradients of `x` and `W` are written anew, in 3 lines"


@pytest.mark.parametrize(
    ("body", "last"),
    [
        ("return helper(grad_output, x, W)", 'return {**helper(grad_output, x, W), "W": x.T @ grad_output}'),
        (
            "return dict(x=grad_output @ W.T, W=W + 1)",
            "return dict(x=grad_output @ W.T, W=x.T @ grad_output)",
        ),
        ("return grad_output @ W.T, W + 1", "return grad_output @ W.T, x.T @ grad_output"),
        ("return pair(grad_output, x, W)", "return (pair(grad_output, x, W)[0], x.T @ grad_output)"),
    ],
)
def test_every_way_to_return_takes_a_new_result(tmp_path, body, last):
    helpers = '\n\ndef helper(g, x, W):\n    return {"x": g @ W.T, "W": W + 1}\n'
    helpers += "\n\ndef pair(g, x, W):\n    return g @ W.T, W + 1\n"
    written = GradientCode(("dW = x.T @ grad_output",), {"W": "dW"})
    found = mended(
        tmp_path, LINEAR.format(body=body) + helpers, write=lambda arguments: written, budget_s=0.0
    )
    assert changed_lines(found)[1] == [last.replace('"W": x.T', "'W': x.T") if "**" in last else last]


def test_a_backward_that_spoils_its_arguments_gets_another_body(tmp_path):
    body = '"""Spoil."""\n    x *= 0.0\n    W[...] = x.sum()\n    return {"x": W, "W": x}'
    written = GradientCode(("dx = grad_output @ W.T", "dW = x.T @ grad_output"), {"x": "dx", "W": "dW"})
    found = mended(tmp_path, LINEAR.format(body=body), write=lambda arguments: written, budget_s=0.0)
    assert found.text.endswith(
        '"""Spoil."""\n    dx = grad_output @ W.T\n    dW = x.T @ grad_output\n    return {\'x\': dx, \'W\': dW}\n'
    )


# ------------------------------------------------------------------ no source


def test_without_a_file_there_is_nothing_to_edit():
    names = {}
    exec(LINEAR.format(body='return {"x": W, "W": x}'), names)
    subject = Subject.of(names["forward"], names["backward"], {"x": X, "W": W})
    right = {"x": U @ W.T, "W": X.T @ U}
    with pytest.raises(SourceError, match="no source file"):
        repair(
            subject, Target(subject.inputs, [U], right, dict.fromkeys(right, 1e-9)), lambda candidate: True
        )


@pytest.mark.parametrize(
    ("text", "why"), [("x = 1\n", "changed since"), ("import os\n" * 40, "changed since"), ("(", "Python")]
)
def test_a_file_that_has_changed_is_left_alone(tmp_path, text, why):
    module = load(tmp_path / "layer.py", LINEAR.format(body='return {"x": W, "W": x}'))
    (tmp_path / "layer.py").write_text(text)
    subject = Subject.of(module.forward, module.backward, {"x": X, "W": W})
    right = {"x": U @ W.T, "W": X.T @ U}
    with pytest.raises(SourceError, match=why):
        repair(
            subject, Target(subject.inputs, [U], right, dict.fromkeys(right, 1e-9)), lambda candidate: True
        )


def test_lines_moved_since_the_import_are_noticed(tmp_path):
    text = LINEAR.format(body='return {"x": W, "W": x}')
    module = load(tmp_path / "layer.py", text)
    (tmp_path / "layer.py").write_text("# new\n" + text)
    subject = Subject.of(module.forward, module.backward, {"x": X, "W": W})
    right = {"x": U @ W.T, "W": X.T @ U}
    with pytest.raises(SourceError, match="changed since"):
        repair(
            subject, Target(subject.inputs, [U], right, dict.fromkeys(right, 1e-9)), lambda candidate: True
        )


def test_a_repair_is_the_same_every_time(tmp_path):
    text = LINEAR.format(body='d = 2 * grad_output\n    return {"x": d @ W.T, "W": x.T @ d}')
    random.seed(1)
    first = mended(tmp_path, text)
    random.seed(2)
    assert mended(tmp_path, text).text == first.text


def test_a_search_counts_its_work_and_looks_at_no_clock(tmp_path, monkeypatch):
    """A machine on which every clock leaps finds the same."""
    text = LINEAR.format(body='d = 2 * grad_output\n    return {"x": d @ W.T, "W": x.T @ d}')
    expected = mended(tmp_path, text).text
    times = itertools.count(0, 3600)
    for clock in ("thread_time", "process_time", "monotonic", "perf_counter", "time"):
        monkeypatch.setattr(time, clock, lambda: float(next(times)))
    assert mended(tmp_path, text).text == expected


def test_outside_the_main_thread_nothing_is_interrupted_but_all_else_works(tmp_path):
    text = LINEAR.format(body='return {"x": grad_output @ W.T, "W": -x.T @ grad_output}')
    found = []
    worker = threading.Thread(target=lambda: found.append(mended(tmp_path, text)))
    worker.start()
    worker.join()
    assert changed_lines(found[0])[1] == ['return {"x": grad_output @ W.T, "W": x.T @ grad_output}']


def test_an_alarm_of_somebody_else_still_rings(tmp_path):
    text = LINEAR.format(body='return {"x": grad_output @ W.T, "W": -x.T @ grad_output}')
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-3)
        rung.clear()
        mended(tmp_path, text)
        time.sleep(0.05)
        assert rung
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# ------------------------------------------------------------------ what runs beside the search


BESIDE_A_TEST = """import numpy as np
from handgrad import check
from handgrad.testing import assert_right

RUNS = []


def slope(x):
    return np.cos(x)


def forward(x):
    return np.sin(x)


def backward(grad_output, x):
    return {"x": grad_output * np.sin(x)}


def inputs():
    return {"x": np.linspace(0.1, 1, 5)}


def look(function):
    return check(forward, function, inputs())


def test_it(x=0.0):
    RUNS.append(look(backward))
    assert_right(forward, backward, inputs())
"""


def test_a_check_in_the_file_is_not_run(tmp_path):
    module = load(tmp_path / "layer.py", BESIDE_A_TEST)
    report = check(module.forward, module.backward, module.inputs())
    assert "np.cos(x)" in report.findings[0].repair or "slope(x)" in report.findings[0].repair
    assert module.RUNS == []


class Endless:
    """An object whose destructor does not end."""

    def __del__(self):
        while True:
            pass


class Failing:
    """An object whose destructor raises."""

    def __del__(self):
        raise ZeroDivisionError


def test_an_alarm_in_a_destructor_is_lost_and_rings_again(monkeypatch):
    """What else a destructor raises is reported as ever, and so is everything afterwards."""
    lost = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: lost.append(args.exc_type))
    hook, inner = sys.unraisablehook, Guard()

    def candidate():
        Endless()
        Failing()
        while True:
            pass

    with inner.search(), pytest.raises(OutOfTimeError), inner.limit(0.05):
        candidate()
    assert sys.unraisablehook is hook
    assert lost == [ZeroDivisionError]


def _compute(seconds, waiting=0.0):
    time.sleep(waiting)
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_what_waits_for_the_processor_has_not_run_long():
    """A busy machine names and repairs what an idle one does; only what waits much longer than that is ended."""
    limits, subject = Guard(), Subject.of(np.sin, lambda g, x: {"x": g}, {"x": X})
    with limits.search(), limits.limit(0.05):
        time.sleep(0.2)
    with limits.search(), pytest.raises(OutOfTimeError), limits.limit(0.05):
        _compute(0.1, waiting=0.2)
    with limits.search(), pytest.raises(OutOfTimeError), limits.limit(0.01):
        time.sleep(0.5)
    with within(0.1):
        time.sleep(0.2)
        subject.run_forward(subject.inputs)
        _compute(0.12)
        with pytest.raises(DeadlineError):
            subject.run_forward(subject.inputs)
    with within(0.1):
        time.sleep(0.5)
        with pytest.raises(DeadlineError):
            subject.run_forward(subject.inputs)


def test_a_pause_of_the_machine_does_not_end_the_naming(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a virtual machine stands still: of what lies between two calls, a few seconds count."""
    subject, passed = Subject.of(np.sin, lambda g, x: {"x": g}, {"x": X}), [0.0]
    for clock in ("thread_time", "monotonic"):
        monkeypatch.setattr(time, clock, lambda: passed[0])
    with within(20):
        for pause in (1000.0, 6.0, 4.0):  # 5 + 5 + 4 seconds
            passed[0] += pause
            subject.run_forward(subject.inputs)
        passed[0] += 7.0
        subject.run_forward(subject.inputs)
        passed[0] += 2.0
        with pytest.raises(DeadlineError):
            subject.run_forward(subject.inputs)


def test_a_candidate_that_checks_is_refused():
    with Guard().search(), pytest.raises(CheckError, match="while it looks for"):
        check(np.sin, lambda g, x: {"x": g * np.cos(x)}, {"x": X})
    assert check(np.sin, lambda g, x: {"x": g * np.cos(x)}, {"x": X}).verdict == "right"


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("grad_output * (1 - a) ** 2", "grad_output * (1 - a ** 2)"),
        ("grad_output * 1 - a ** 2", "grad_output * (1 - a ** 2)"),
        ("grad_output - (grad_output * a) ** 2", "grad_output - grad_output * a ** 2"),
    ],
)
def test_brackets_are_set_where_they_belong(tmp_path, wrong, right):
    text = (
        "import numpy as np\n\n\ndef forward(x):\n    return np.tanh(x)\n\n\ndef backward(grad_output, x):\n"
    )
    text += f"    a = np.tanh(x)\n    return {{'x': {wrong}}}\n"
    upstream = np.arange(8.0).reshape(2, 4) / 3 - 2
    x = np.random.default_rng(4).normal(size=(2, 4))
    found = mended(tmp_path, text, {"x": upstream * (1 - np.tanh(x) ** 2)}, {"x": x}, upstream=upstream)
    assert changed_lines(found)[1] == [f"return {{'x': {right}}}"]

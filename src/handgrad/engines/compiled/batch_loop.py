"""The batch loop and the threads that help: a whole epoch in native code, without Python.

``run`` goes through batches: it copies the batch's row numbers, sets the learning rate and the step, and goes through a
table of steps, each of five 64-bit numbers: what to call, the address of its arguments, how far it goes, into how many
parts, how long a part is. A step of several parts is done by whoever is there: the caller, and helping threads in
``work``, take one part after the other. The parts, and so all numbers, are the same whoever does them.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from functools import cache
from queue import SimpleQueue

import numpy as np

from handgrad.engines.compiled.elementary import as_kind
from handgrad.engines.compiled.ir import ONE, ZERO, Code, Number, literal, module
from handgrad.engines.compiled.native import native


class Control(IntEnum):
    """The fields of the memory that ``run`` is given."""

    STEPS = 0  # the address of the table for whole batches
    STEP_COUNT = 1
    LAST_STEPS = 2  # the same for a shorter last batch
    LAST_STEP_COUNT = 3
    BATCH = 4  # rows in a whole batch
    ROWS = 5  # rows in all
    ORDER = 6  # the address of all row numbers, and one more
    ROW_NUMBERS = 7  # where those of one batch are copied to, and the next
    RATES = 8  # the address of the learning rates, or 0
    RATE = 9  # where the rate of one batch is copied to
    STEP = 10  # where the number of the step is written, as a double
    FIRST_STEP = 11
    POOL = 12  # the address of the memory shared with other threads; its parts are done by one when 0


ADDRESSES = {
    Control.STEPS, Control.LAST_STEPS, Control.ORDER, Control.ROW_NUMBERS, Control.RATE, Control.STEP
}  # fmt: skip
"""The fields that are always addresses."""


class Pool(IntEnum):
    """The fields of the memory that threads share; what changes often has a cache line of its own."""

    TICKET = 0  # number of the job · how many parts it has (16 bits) · the next part to do (16 bits)
    DONE = 8
    STOP = 16
    CALL = 24
    ARGUMENTS = 25
    EXTENT = 26
    PART = 27


POOL_SIZE = 32
STEP_SIZE = 5

PATIENCE = 200
"""How often a thread looks again before it lets others run: on a busy machine two may share one processor."""

SLICE_SECONDS = 0.05
"""How long native code runs before Python looks for Ctrl-C, shows progress and thinks about threads, in seconds."""

TRIAL_SECONDS = 0.005
"""How long the other way is tried, …"""

TRIALS_APART = 30
"""… how many times as long as a trial lasts is waited before the next, …"""

TRIALS_APART_WHEN_SLOWER = 3
"""… and how many times as long when everything has become slower meanwhile, …"""

SLOWER = 1.2
"""… a row taking so many times as long as before: more than the noise between two slices of an idle machine."""

POOL_ADDRESS = Number("%pool", "ptr")
PART_BITS, JOB_BITS, LOW_BITS = 16, 32, 0xFFFF


def driver_text(triple: str) -> str:
    """Return the code, with the processor's and the system's own ways of waiting."""
    functions = (_part(), _take(), _pause(triple), _work(), _share(), _run())
    return module(*functions)


def _field(code: Code, place: int, kind: str = "i64", base: str = "%pool") -> Number:
    return code.load(_at(code, place, base), kind)


def _at(code: Code, place: int, base: str = "%pool") -> str:
    return code.address(base, "i64", literal(place, "i64"))


def _part() -> Code:
    """Do one part of the job at hand."""
    code = Code()
    call, arguments = (_field(code, place, "ptr") for place in (Pool.CALL, Pool.ARGUMENTS))
    extent, part = (_field(code, place) for place in (Pool.EXTENT, Pool.PART))
    first = code.parameter("i64 %number") * part
    last = code.intrinsic("smin", extent, first + part)
    code.call(call.text, "i32", arguments, first, last)
    code.emit(f"atomicrmw add ptr {_at(code, Pool.DONE)}, i64 1 release", "i64")
    return code.define("internal void @part(ptr %pool, i64 %number)", "void")


def _take() -> Code:
    """Take one part that nobody has taken; false when there is none."""
    code = Code()
    ticket = code.load("%pool", "i64", order="acquire")
    number = ticket & LOW_BITS
    is_left = code.compare("ult", number, ticket >> PART_BITS & LOW_BITS)
    with code.when(is_left):
        pair = code.emit(f"cmpxchg ptr %pool, {ticket}, {ticket + 1} acq_rel acquire", "{ i64, i1 }")
        with code.when(code.emit(f"extractvalue {pair}, 1", "i1")):
            code.call("@part", "void", POOL_ADDRESS, number)
    return code.define("internal i1 @take(ptr %pool)", f"{is_left}")


def _pause(triple: str) -> Code:
    """Wait a little, after so many times in vain; return how many they are now."""
    code = Code()
    longer = code.parameter("i64 %waited") + 1
    if "windows" not in triple:
        with code.when(code.compare("ugt", longer, literal(PATIENCE, "i64"))):
            code.external("@sched_yield", "i32")
    if triple.startswith(("x86_64", "i686")):
        code.external("@llvm.x86.sse2.pause", "void")
    elif triple.startswith(("aarch64", "arm64")):
        code.external("@llvm.aarch64.hint", "void", literal(1, "i32"))
    return code.define("internal i64 @pause(i64 %waited)", f"{longer}")


def _work() -> Code:
    """Do parts until the pool stops."""
    code = Code()
    waited = code.variable(ZERO)
    with code.repeat() as working:
        with code.repeat() as taking:
            taken = code.call("@take", "i1", POOL_ADDRESS)
            with code.when(taken):
                code.store(ZERO, waited)
            taking.append(taken)
        code.store(code.call("@pause", "i64", code.load(waited, "i64")), waited)
        stop = code.load(_at(code, Pool.STOP), "i64", order="acquire")
        working.append(stop.equals(ZERO))
    return code.define("void @work(ptr %pool)", "void")


def _share() -> Code:
    """Do the parts of a step with whoever helps."""
    code = Code()
    step = {
        Pool.CALL: "ptr %call", Pool.ARGUMENTS: "ptr %arguments", Pool.EXTENT: "i64 %extent", Pool.PART: "i64 %part",
    }  # fmt: skip
    for place, given in step.items():
        code.store(code.parameter(given), _at(code, place))
    done, parts, waited = _at(code, Pool.DONE), code.parameter("i64 %parts"), code.variable(ZERO)
    code.store(ZERO, done, order="release")
    job = code.load("%pool", "i64", order="acquire") >> JOB_BITS
    job = job + 1 << JOB_BITS
    code.store(job | parts << PART_BITS, "%pool", order="release")
    with code.repeat() as taking:
        taking.append(code.call("@take", "i1", POOL_ADDRESS))
    with code.repeat() as waiting:
        code.store(code.call("@pause", "i64", code.load(waited, "i64")), waited)
        waiting.append(code.load(done, "i64", order="acquire") < parts)
    return code.define(f"internal void @share(ptr %pool, {', '.join(step.values())}, i64 %parts)", "void")


def _run() -> Code:
    """Do the batches from %first to before %last; return the first that stopped, or %last."""
    code = Code()
    given = {
        place: _field(code, place, "ptr" if place in ADDRESSES else "i64", "%control") for place in Control
    }
    rates, pool, size = given[Control.RATES], given[Control.POOL], given[Control.BATCH]
    has_rates, has_pool = rates.differs(ZERO), pool.differs(ZERO)
    with code.loop(*code.part) as batch:
        row = batch * size
        left = given[Control.ROWS] - row
        is_short = left < size
        n = code.select(is_short, left, size)
        steps = code.select(is_short, given[Control.LAST_STEPS], given[Control.STEPS])
        count = code.select(is_short, given[Control.LAST_STEP_COUNT], given[Control.STEP_COUNT])
        rows = Number(code.address(given[Control.ORDER].text, "i64", row), "ptr")
        copied, never = (n + 1) * 8, literal(0, "i1")  # bytes, with the next row's number
        code.external("@llvm.memcpy.p0.p0.i64", "void", given[Control.ROW_NUMBERS], rows, copied, never)
        number = code.cast("sitofp", given[Control.FIRST_STEP] + batch, "double")
        code.store(number, given[Control.STEP].text)
        with code.when(has_rates):
            first = code.cast("inttoptr", rates, "ptr")
            rate = code.load(code.address(first.text, "double", batch), "double")
            code.store(rate, given[Control.RATE].text)
        with code.loop(ZERO, count) as place:
            record = code.address(steps.text, "i64", place * STEP_SIZE)
            call, arguments = (_field(code, k, "ptr", record) for k in range(2))
            extent, parts, part = (_field(code, k, "i64", record) for k in range(2, STEP_SIZE))
            is_whole = parts <= ONE
            with code.when(is_whole):
                status = code.call(call.text, "i32", arguments, ZERO, extent)
                with code.when(status.differs(0)):
                    code.leave(batch)
            is_divided = ~is_whole
            with code.when(is_divided & has_pool):
                shared = code.cast("inttoptr", pool, "ptr")
                code.call("@share", "void", shared, call, arguments, extent, part, parts)
            with code.when(is_divided & ~has_pool), code.loop(ZERO, (extent + (part - 1)) // part) as done:
                start = done * part
                end = code.intrinsic("smin", extent, start + part)
                code.call(call.text, "i32", arguments, start, end)
    return code.define("i64 @run(ptr %control, i64 %first, i64 %last)", f"{code.part[1]}")


def check_text(total: str, count: str) -> str:
    """Return the code of a step that adds up loss and count, and stops when the loss is not finite.

    Its arguments: the loss, of this type · the count, of this type · the two sums so far.
    """
    code = Code()
    sums = code.argument(2, "ptr").text
    values = [
        as_kind(code, code.load(code.argument(place, "ptr").text, kind), "double")
        for place, kind in enumerate((total, count))
    ]
    with code.when(~(values[0] - values[0]).equals(0)):
        code.leave(literal(1, "i32"))
    for place, value in enumerate(values):
        address = _at(code, place, sums)
        code.store(code.load(address, "double") + value, address)
    return module(code.define())


class Helpers:
    """Helping threads, which wait in native code while an epoch runs, and sleep otherwise; for one caller at a time."""

    def __init__(self, count: int) -> None:
        self.memory = np.zeros(POOL_SIZE, np.int64)
        self.address = native().address(driver_text(native().triple), "work")
        self.work = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address)
        self.wanted: SimpleQueue[None] = SimpleQueue()  # no interrupt comes within its methods
        self.taken = threading.Lock()
        self.caller = -1  # the processor that the helpers do not use
        self.threads = [threading.Thread(target=self.help, daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def help(self) -> None:
        """Do parts whenever there are any (in a thread of its own)."""
        while True:
            self.wanted.get()
            self.work(self.memory.ctypes.data)

    @contextmanager
    def shared(self) -> Iterator[int]:
        """Wake the helpers; yields the address of the shared memory, or 0 when they help another caller.

        Nobody waits for their end: they take no part of a job that is done, and stop, or help the next caller.
        """
        if not self.taken.acquire(blocking=False):
            yield 0
            return
        try:
            self.keep_apart()
            self.memory[Pool.STOP] = 0
            for _ in self.threads:
                self.wanted.put(None)
            yield self.memory.ctypes.data
        finally:
            self.memory[Pool.STOP] = 1
            self.taken.release()

    def keep_apart(self) -> None:
        """Keep the helpers off the processor that the caller runs on.

        Linux wakes a thread where its waker runs, and two threads that wait for each other politely may then share
        one processor for a second or more, while another idles.
        """
        if not hasattr(os, "sched_setaffinity"):
            return
        here = _c_library().sched_getcpu()
        others = os.sched_getaffinity(0) - {here}
        if others and here != self.caller:
            with suppress(OSError):  # not everywhere allowed, and no more than a help
                for thread in self.threads:
                    os.sched_setaffinity(thread.native_id or 0, others)
            self.caller = here


@cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


@cache
def helpers(count: int) -> Helpers:
    """Return the helping threads of this process."""
    return Helpers(count)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=helpers.cache_clear)  # threads do not come along


class Choice:
    """Whether help is worth it, measured while the program runs: mostly the better way, now and then the other.

    Another program on the same processors can make waiting for a helper dearer than doing its part. ``helped`` is
    whether the next slice of batches is done with help, ``length`` how long it takes, in seconds.
    """

    def __init__(self) -> None:
        self.helped, self.length = False, TRIAL_SECONDS
        self.seconds: dict[bool, float] = {}  # for a row, with help and without
        self.trial = self.since_trial = 0.0  # seconds

    def measured(self, seconds: float, rows: int) -> None:
        """Record how long a slice took, and decide how the next one is done."""
        if seconds < TRIAL_SECONDS / 2:
            return  # too short to tell: waking a helper takes its time too
        before = self.seconds.get(self.helped, seconds / rows)
        self.seconds[self.helped] = seconds / rows
        self.since_trial += seconds
        if self.length == TRIAL_SECONDS:
            self.trial, self.since_trial = seconds, 0.0
        patience = TRIALS_APART_WHEN_SLOWER if seconds / rows > SLOWER * before else TRIALS_APART
        if len(self.seconds) < 2 or self.since_trial > patience * self.trial:
            self.helped, self.length = not self.helped, TRIAL_SECONDS
        else:
            self.helped, self.length = self.seconds[True] <= self.seconds[False], SLICE_SECONDS

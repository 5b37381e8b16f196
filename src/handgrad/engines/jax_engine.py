"""The JAX engine: the program's own lines on jax.numpy, over all the devices that JAX has.

The lines are of the whole batch. Only where rows lie is stated here, along the one axis of a mesh: XLA's partitioner
divides the lines among the devices and puts the sums between them, so that a mean, a batch norm, a mask or the norm of
all gradients is of all rows, as it is written. The devices may be of several processes, on many machines: each gathers the
rows of its own.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from handgrad.arrays import dense, is_mapped, is_sparse
from handgrad.engines.cluster import agreed, devices_by_process, processes
from handgrad.engines.engine import Array, Epoch, MicroBatches, NonFiniteLossError, convert
from handgrad.errors import ConfigurationError, need
from handgrad.program import Program, ProgramLine
from handgrad.program.lines_in_python import code_of
from handgrad.program.lowered import UnsupportedLineError
from handgrad.rules import PRIMITIVES
from handgrad.rules.rule_source import blocks

BYTES_AT_A_TIME, BATCHES_AT_A_TIME, FIRST_BATCHES = 16 << 20, 4096, 8
"""The most that is sent to the devices while they compute on what was sent before, and how many batches at first."""

SECONDS_AT_A_TIME = 0.5
"""So long the devices compute in one go: progress and an interrupt wait for it."""

RESIDENT_BYTES = 1 << 30
"""Arrays of no more stay on every device, which gathers its rows itself."""


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Handle an interrupt only when this is left.

    XLA compiles in a thread of its own, which crashes where an exception ends the process meanwhile, as does the import of
    JAX; and an exception in JAX's callback of the garbage collector, which may run whenever objects are made, is lost.
    """
    came: list[tuple[int, FrameType | None]] = []
    before = {}
    if threading.current_thread() is threading.main_thread():  # Python handles signals in that one alone
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        before = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in before:
        signal.signal(number, lambda *arguments: came.append(arguments))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for arguments in came[:1]:
            before[signal.Signals(arguments[0])](*arguments)


class JaxEngine:
    """Runs programs through XLA, on so many devices of each process, all by default.

    Raises `MissingPackageError` without JAX, `ConfigurationError` where there are fewer devices.
    """

    @uninterrupted()
    def __init__(self, devices: int | None = None) -> None:
        self.jax = need("jax", "the jax engine")
        found = devices_by_process()
        if devices is not None and devices > len(found[0]):
            kind = found[0][0].platform
            raise ConfigurationError(
                f"training.devices: {devices} are asked for, and JAX has {len(found[0])} ({kind})",
                fix="ask for no more, or for none, which takes all"
                + f"; XLA_FLAGS=--xla_force_host_platform_device_count={devices} simulates them"
                * (kind == "cpu"),
            )
        self.devices = [each for its in found for each in its[:devices]]

    def bind(self, program: Program, arrays: Mapping[str, Array]) -> BoundJax | MicroBatches:
        """Prepare a program to run on ``arrays``, which hold what its updates made when an epoch is over."""
        if program.micro_batch:
            return MicroBatches(self, program, arrays)
        return BoundJax(self.jax, self.devices, program, arrays)


class BoundJax:
    """A program that JAX traces, with the arrays it keeps."""

    @uninterrupted()
    def __init__(
        self, jax: Any, devices: Sequence[Any], program: Program, arrays: Mapping[str, Array]
    ) -> None:
        self.jax, self.program = jax, program
        self.kept = {name: arrays[name] for name in program.shapes}
        self.updated = {line.target for line in program.lines if line.phase == "update"} & self.kept.keys()
        self.inputs = {value.name: value for value in program.inputs}
        self.types = {
            name: np.dtype(np.int64 if value.whole else program.dtype) for name, value in self.inputs.items()
        }
        sharding = jax.sharding
        mesh = jax.make_mesh(
            (len(devices),), ("rows",), axis_types=(sharding.AxisType.Auto,), devices=devices
        )
        self.everywhere = sharding.NamedSharding(mesh, sharding.PartitionSpec())
        self.by_rows = sharding.NamedSharding(mesh, sharding.PartitionSpec(None, "rows"))
        self.names = _names(jax)
        self.resident: tuple[Mapping[str, Array], dict[str, Any]] = {}, {}
        self.at_once = FIRST_BATCHES
        self.batches, self.once = jax.jit(self.traced_batches, donate_argnums=0), jax.jit(self.traced_once)
        kind = f"{len(devices)} {devices[0].device_kind}"
        self.facts = {"engine": "jax", "devices": kind, "jax": jax.__version__}
        self.facts |= {"processes": processes()} if processes() > 1 else {}
        with jax.enable_x64(
            True
        ):  # traced on two rows and not run, so that a line that JAX cannot run raises here
            rows = {
                name: np.zeros([2 if size == "n" else int(size) for size in value.shape], self.types[name])
                for name, value in self.inputs.items()
            }
            jax.eval_shape(self.traced_once, self.kept, rows, dict.fromkeys(program.scalars, 1))

    def epoch(self, epoch: Epoch, progress: Callable[[int], None] | None = None) -> tuple[float, float]:
        """Run every batch; see `BoundProgram.epoch`."""
        jax = self.jax
        with jax.enable_x64(True):
            numbers = np.float64(epoch.total), np.float64(epoch.count), np.int64(0), np.bool(True)
            with uninterrupted():
                state = jax.tree.map(self.send, (self.kept, *numbers))
            seed, arrays = np.uint64(epoch.seed), epoch.lazy_arrays()
            began, before = 0.0, 0
            for first, last, room in self.parts(epoch):
                with uninterrupted():
                    # while the devices compute on the part before
                    rows = self.rows(arrays, epoch, first, last, room)
                    done = int(state[3])
                    if before:
                        seconds = (time.perf_counter() - began) / before
                        self.at_once = max(1, int(agreed(SECONDS_AT_A_TIME / seconds)))
                    if progress is not None:
                        progress(min(done * epoch.batch_size, len(epoch.order)))
                    rates = np.zeros(room)
                    if len(epoch.learning_rates):
                        rates[: last - first] = epoch.learning_rates[first:last]
                    state = self.batches(
                        state, *rows, rates, last - first, int(epoch.first_step) + first, seed
                    )
                    began, before = time.perf_counter(), last - first
            with uninterrupted():
                kept, total, count, done, is_finite = jax.tree.map(np.asarray, state)
                for name, array in self.kept.items():
                    array[...] = kept[name]
        if not is_finite:
            raise NonFiniteLossError(int(done))
        if progress is not None:
            progress(len(epoch.order))
        return float(total), float(count)

    @uninterrupted()
    def run(self, **inputs: Any) -> dict[str, Any]:
        """Run the lines once; see `BoundProgram.run`."""
        rows = {
            name: convert(dense(inputs[name]), value, self.program.dtype)
            for name, value in self.inputs.items()
        }
        with self.jax.enable_x64(True):
            found = self.once(self.kept, rows, {name: inputs[name] for name in self.program.scalars})
            return {name: np.asarray(each)[()] for name, each in found.items()}

    def parts(self, epoch: Epoch) -> Iterator[tuple[int, int, int]]:
        """Yield the parts of an epoch: first batch, last batch, and for how many there is room.

        The room follows from the size of a batch alone: wherever an epoch is cut, the same code runs, to the last bit.
        A short last batch is a part by itself.
        """
        whole = len(epoch.order) // epoch.batch_size
        row = sum(
            math.prod(map(int, value.shape[1:])) * self.types[name].itemsize
            for name, value in self.inputs.items()
        )
        room = min(max(BYTES_AT_A_TIME // max(row * epoch.batch_size, 1), 1), BATCHES_AT_A_TIME)
        first = 0
        while first < whole:
            last = min(first + min(room, self.at_once), whole)
            yield first, last, room
            first = last
        if whole < len(epoch):
            yield whole, whole + 1, 1

    def rows(
        self, arrays: Mapping[str, Any], epoch: Epoch, first: int, last: int, room: int
    ) -> tuple[dict[str, Any], Any]:
        """Return the rows of some batches, each device has its own; or all rows, and which of them each device takes."""
        numbers = np.asarray(epoch.order[first * epoch.batch_size : last * epoch.batch_size])
        order = numbers.reshape(last - first, -1)
        divides = order.shape[1] % self.by_rows.mesh.size == 0  # else every device computes them all
        where = self.by_rows if divides else self.everywhere

        def sent(kind: Any, array: Any = None) -> Any:
            shape = () if array is None else array.shape[1:]  # of a row; None stands for the rows' numbers

            def part(index: Any) -> Array:
                mine = order[:, index[1]]
                found = np.zeros((room, mine.shape[1], *shape), kind)
                rows = mine if array is None else dense(array[mine.ravel()])
                found[: len(mine)] = rows.reshape(*mine.shape, *shape)
                return found

            return self.jax.make_array_from_callback((room, order.shape[1], *shape), where, part)

        if (resident := self.on_devices(epoch.arrays)) is not None:
            return resident, sent(np.int64)
        return {name: sent(self.type_of(name, arrays[name]), arrays[name]) for name in self.types}, None

    def on_devices(self, arrays: Mapping[str, Array]) -> dict[str, Any] | None:
        """Return arrays as every device has them, sent where the mapping is a new one; None where their rows are sent."""
        if self.resident[0] is not arrays:
            here = {name: arrays[name] for name in self.types}
            if processes() > 1 or any(is_mapped(each) or is_sparse(each) for each in here.values()):
                return None  # a process reads the rows of its own devices alone
            types = {name: self.type_of(name, each) for name, each in here.items()}
            if sum(each.size * types[name].itemsize for name, each in here.items()) > RESIDENT_BYTES:
                return None
            sent = {name: self.send(np.asarray(each, types[name])) for name, each in here.items()}
            self.resident = arrays, sent
        return self.resident[1]

    def type_of(self, name: str, array: Array) -> np.dtype[Any]:
        """Return the type in which rows are sent: the program's, or the array's where that is smaller."""
        wanted = self.types[name]
        return array.dtype if array.dtype.itemsize < wanted.itemsize else wanted

    def send(self, array: Any) -> Any:
        """Send an array, which every process has, to every device."""
        return self.jax.make_array_from_callback(np.shape(array), self.everywhere, lambda part: array[part])

    # what JAX traces

    def _run(self, scope: dict[str, Any], *, guarded: bool = False) -> dict[str, Any]:
        """Run the lines; an update in place gives its name a new value, or, guarded, only where the loss is finite."""
        if "n" in self.program.reads:
            scope["n"] = scope[self.program.inputs[0].name].shape[0]
        again = before = ""
        for block in blocks(self.program.lines):
            if block[0].again != again:
                again = block[0].again
                self._apart(again, before, scope)
            before = block[-1].target
            updated = {line.target: scope[line.target] for line in block if line.target in self.updated}
            try:
                if block[0].loop:
                    self._loop(block, scope)
                else:
                    exec(code_of(str(block[0]), "exec"), dict(self.names), scope)
            except Exception as error:  # whatever jax.numpy has against it
                raise UnsupportedLineError(block[0], f"JAX: {error}".partition("\n")[0]) from error
            if guarded:  # here and not after all lines: XLA would copy each array that a later update reads
                scope |= {name: self._if_finite(scope, scope[name], old) for name, old in updated.items()}
        return scope

    def _if_finite(self, scope: dict[str, Any], new: Any, old: Any) -> Any:
        """Return the new value, in the old one's type, or the old one where the loss is not finite."""
        jnp = self.jax.numpy
        return jnp.where(jnp.isfinite(scope["total"]), new.astype(old.dtype), old)

    def _apart(self, again: str, gradient: str, scope: dict[str, Any]) -> None:
        """Let XLA compute a block again only when this gradient is there, and not take what forward has computed."""
        lines = [line for line in self.program.lines if line.again == again != ""]
        reads = frozenset().union(*(line.reads for line in lines)).intersection(scope) | {gradient}
        arrays = {name: scope[name] for name in sorted(reads) if lines and hasattr(scope[name], "dtype")}
        scope |= self.jax.lax.optimization_barrier(arrays)

    def _loop(self, block: list[ProgramLine], scope: dict[str, Any]) -> None:
        """Run a loop as XLA's own, which does not grow with its length; each line gives its array a new value."""
        variable, _, steps = block[0].loop.removeprefix("for ").partition(" in ")
        times = list(eval(code_of(steps), dict(self.names), scope))
        step = times[1] - times[0] if len(times) > 1 else 1

        def once(number: Any, carried: Any) -> Any:
            local = {**scope, **carried, variable: times[0] + step * number}
            for line in block:
                value = eval(code_of(line.expression), dict(self.names), local)
                part = local[line.target].at[eval(code_of(f"np.s_[{line.index}]"), dict(self.names), local)]
                local[line.target] = part.set(value) if line.operator == "=" else part.add(value)
            return {name: local[name] for name in carried}

        written = {line.target: scope[line.target] for line in block}
        scope |= self.jax.lax.fori_loop(0, len(times), once, written) if times else {}

    def traced_once(self, kept: Any, rows: Any, numbers: Any) -> dict[str, Any]:
        """Return the outputs of the lines, run once."""
        scope = self._run({**kept, **rows, **numbers})
        return {name: scope[name] for name in self.program.outputs}

    def traced_batches(
        self, state: Any, data: Any, places: Any, rates: Any, batches: Any, first_step: Any, seed: Any
    ) -> Any:
        """Run so many batches, until a loss is not finite; that batch changes nothing.

        ``places`` are the numbers of each batch's rows in the data; None where the data are the batches themselves.
        """
        lax, jnp = self.jax.lax, self.jax.numpy
        kept, total, count, done, is_finite = state

        def step(state: Any) -> Any:
            kept, total, count, at, _ = state
            place = at if places is None else places[at]
            batch = {name: each[place].astype(self.types[name]) for name, each in data.items()}
            # Of JAX's weak types, which are Python's numbers: a line with a step of type int64 would compute in float64.
            numbers = {"learning_rate": rates[at].astype(self.program.dtype), "step": first_step + at}
            scope = self._run({**kept, **batch, **numbers, "seed": seed}, guarded=True)
            is_finite = jnp.isfinite(scope["total"])
            new = {
                name: scope[name] if name in self.updated else self._if_finite(scope, scope[name], old)
                for name, old in kept.items()
            }
            total += jnp.where(is_finite, scope["total"], 0)
            count += jnp.where(is_finite, scope["count"], 0)
            new = lax.with_sharding_constraint(new, self.everywhere)
            return new, total, count, at + is_finite, is_finite

        kept, total, count, at, is_finite = lax.while_loop(
            lambda state: (state[3] < batches) & state[4], step, (kept, total, count, 0, is_finite)
        )
        return kept, total, count, done + at, is_finite


def _names(jax: Any) -> dict[str, Any]:
    """Return what lines may read: the primitives' own source with jax.numpy for NumPy, but for views and what adds up."""
    jnp = jax.numpy
    numpy = SimpleNamespace(**{**vars(jnp), "prod": np.prod})  # of sizes, which are known while JAX traces
    on_jax = {
        name: FunctionType(each.__code__, {**each.__globals__, "np": numpy}, name, each.__defaults__)
        for name, each in PRIMITIVES.items()
        if name != "np"
    }

    def add_rows_at(i: Any, v: Any, like: Any) -> Any:
        return jnp.zeros_like(like).at[i].add(v)

    def windows(
        x: Any, size: Any, stride: int = 1, padding: int = 0, dilation: int = 1, fill: float = 0.0
    ) -> Any:
        first = x.ndim - 1 - len(size)
        around = [(0, 0)] * first + [(padding, padding)] * len(size) + [(0, 0)]
        x = jnp.pad(x, around, constant_values=fill)
        counts = [
            (a - dilation * (b - 1) - 1) // stride + 1 for a, b in zip(x.shape[first:-1], size, strict=True)
        ]
        places = _places(size, counts, stride, dilation)
        return jnp.stack([x[(..., *place, slice(None))] for place in places], axis=-2)

    def add_windows(
        v: Any, sizes: Any, size: Any, stride: int = 1, padding: int = 0, dilation: int = 1
    ) -> Any:
        first = v.ndim - 2 - len(size)
        padded = (length + 2 * padding for length in sizes)
        total = jnp.zeros((*v.shape[:first], *padded, v.shape[-1]), v.dtype)
        for number, place in enumerate(_places(size, v.shape[first:-2], stride, dilation)):
            total = total.at[(..., *place, slice(None))].add(v[..., number, :])
        return total[(..., *(slice(padding, padding + length) for length in sizes), slice(None))]

    return {**on_jax, "np": jnp, "add_rows_at": add_rows_at, "windows": windows, "add_windows": add_windows}


def _places(size: Any, counts: Any, stride: int, dilation: int) -> Iterator[list[slice]]:
    """Yield, for each place of a window, where all windows have it along the axes before the channels."""
    for position in np.ndindex(*size):
        starts = [dilation * each for each in position]
        yield [
            slice(a, a + stride * (count - 1) + 1, stride) for a, count in zip(starts, counts, strict=True)
        ]

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from handgrad.arrays import dense
from handgrad.engines.cluster import devices_by_process, processes
from handgrad.engines.engine import Array, Epoch, MicroBatches, NonFiniteLossError, convert
from handgrad.errors import ConfigurationError, need
from handgrad.program import Program, ProgramLine
from handgrad.program.lines_in_python import code_of
from handgrad.program.lowered import UnsupportedLineError
from handgrad.rules import PRIMITIVES
from handgrad.rules.rule_source import blocks

BYTES_AT_A_TIME, BATCHES_AT_A_TIME = 32 << 20, 512
"""Of rows that are gathered and sent, while the devices compute on those sent before."""


class JaxEngine:
    """Runs programs through XLA, on so many devices of each process, all by default.

    Raises `MissingPackageError` without JAX, `ConfigurationError` where there are fewer devices.
    """

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

    def __init__(
        self, jax: Any, devices: Sequence[Any], program: Program, arrays: Mapping[str, Array]
    ) -> None:
        self.jax, self.program = jax, program
        self.kept = {name: arrays[name] for name in program.shapes}
        self.inputs = {value.name: value for value in program.inputs}
        self.types = {
            name: np.dtype(np.int64 if value.kind in ("index", "class") else program.dtype)
            for name, value in self.inputs.items()
        }
        sharding = jax.sharding
        mesh = jax.make_mesh(
            (len(devices),), ("rows",), axis_types=(sharding.AxisType.Auto,), devices=devices
        )
        self.everywhere = sharding.NamedSharding(mesh, sharding.PartitionSpec())
        self.by_rows = sharding.NamedSharding(mesh, sharding.PartitionSpec(None, "rows"))
        self.names = _names(jax)
        self.batches, self.once = jax.jit(self._batches, donate_argnums=0), jax.jit(self._once)
        kind = f"{len(devices)} {devices[0].device_kind}"
        self.facts = {"engine": "jax", "devices": kind, "jax": jax.__version__}
        self.facts |= {"processes": processes()} if processes() > 1 else {}
        with (
            uninterrupted(),
            jax.enable_x64(True),
        ):  # two rows, traced and not run: to hear now what JAX cannot do
            rows = {
                name: np.zeros([2 if size == "n" else int(size) for size in value.shape], self.types[name])
                for name, value in self.inputs.items()
            }
            jax.eval_shape(self._once, self.kept, rows, dict.fromkeys(program.scalars, 1))

    def epoch(self, epoch: Epoch, progress: Callable[[int], None] | None = None) -> tuple[float, float]:
        """Run every batch; see `BoundProgram.epoch`."""
        jax = self.jax
        with jax.enable_x64(True):
            numbers = np.float64(epoch.total), np.float64(epoch.count), np.int64(0), np.bool(True)
            state = jax.tree.map(self.send, (self.kept, *numbers))
            seed = np.uint64(epoch.seed)
            for first, last, room in self.parts(epoch):
                with uninterrupted():
                    rows = self.rows(epoch, first, last, room)  # while the devices compute on the part before
                    if progress is not None:
                        progress(min(int(state[3]) * epoch.batch_size, len(epoch.order)))
                    rates = np.zeros(room)
                    if len(epoch.learning_rates):
                        rates[: last - first] = epoch.learning_rates[first:last]
                    state = self.batches(state, rows, rates, first, last, epoch.first_step, seed)
            kept, total, count, done, is_finite = state
            for name, array in self.kept.items():
                array[...] = np.asarray(kept[name])
        if not is_finite:
            raise NonFiniteLossError(int(done))
        if progress is not None:
            progress(len(epoch.order))
        return float(total), float(count)

    def run(self, **inputs: Any) -> dict[str, Any]:
        """Run the lines once; see `BoundProgram.run`."""
        rows = {
            name: convert(dense(inputs[name]), value, self.program.dtype)
            for name, value in self.inputs.items()
        }
        with uninterrupted(), self.jax.enable_x64(True):
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
        for first in range(0, whole, room):
            yield first, min(first + room, whole), room
        if whole < len(epoch):
            yield whole, whole + 1, 1

    def rows(self, epoch: Epoch, first: int, last: int, room: int) -> dict[str, Any]:
        """Gather the rows of some batches, and send each device its own."""
        order = epoch.order[first * epoch.batch_size : last * epoch.batch_size].reshape(last - first, -1)
        divides = order.shape[1] % self.by_rows.mesh.size == 0  # else every device computes them all
        where = self.by_rows if divides else self.everywhere

        def gathered(array: Any, wanted: np.dtype[Any]) -> Any:
            kind = array.dtype if array.dtype.itemsize < wanted.itemsize else wanted

            def part(index: Any) -> Array:
                mine = order[:, index[1]]
                found = np.zeros((room, *mine.shape[1:], *array.shape[1:]), kind)
                found[: len(mine)] = dense(array[mine.ravel()]).reshape(*mine.shape, *array.shape[1:])
                return found

            shape = (room, order.shape[1], *array.shape[1:])
            return self.jax.make_array_from_callback(shape, where, part)

        return {name: gathered(epoch.arrays[name], wanted) for name, wanted in self.types.items()}

    def send(self, array: Any) -> Any:
        """Send an array, which every process has, to every device."""
        return self.jax.make_array_from_callback(np.shape(array), self.everywhere, lambda part: array[part])

    # what JAX traces

    def _run(self, scope: dict[str, Any]) -> dict[str, Any]:
        """Run the lines; an update in place gives its name a new value."""
        if "n" in self.program.reads:
            scope["n"] = scope[self.program.inputs[0].name].shape[0]
        again = before = ""
        for block in blocks(self.program.lines):
            if block[0].again != again:
                again = block[0].again
                self._apart(again, before, scope)
            before = block[-1].target
            try:
                if block[0].loop:
                    self._loop(block, scope)
                else:
                    exec(code_of(str(block[0]), "exec"), dict(self.names), scope)
            except Exception as error:  # whatever jax.numpy has against it
                raise UnsupportedLineError(block[0], f"JAX: {error}".partition("\n")[0]) from error
        return scope

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

    def _once(self, kept: Any, rows: Any, numbers: Any) -> dict[str, Any]:
        scope = self._run({**kept, **rows, **numbers})
        return {name: scope[name] for name in self.program.outputs}

    def _batches(
        self, state: Any, rows: Any, rates: Any, first: Any, last: Any, first_step: Any, seed: Any
    ) -> Any:
        """Run the batches from ``first`` to before ``last``, until a loss is not finite; that batch changes nothing."""
        lax, jnp = self.jax.lax, self.jax.numpy

        def step(state: Any) -> Any:
            kept, total, count, done, _ = state
            at = done - first
            batch = {name: lax.dynamic_index_in_dim(each, at, keepdims=False) for name, each in rows.items()}
            batch = {name: each.astype(self.types[name]) for name, each in batch.items()}
            numbers = {"learning_rate": rates[at].astype(self.program.dtype), "step": first_step + done}
            scope = self._run({**kept, **batch, **numbers, "seed": seed})
            is_finite = jnp.isfinite(scope["total"])
            new = {
                name: jnp.where(is_finite, scope[name].astype(old.dtype), old) for name, old in kept.items()
            }
            total += jnp.where(is_finite, scope["total"], 0)
            count += jnp.where(is_finite, scope["count"], 0)
            new = lax.with_sharding_constraint(new, self.everywhere)
            return new, total, count, done + is_finite, is_finite

        return lax.while_loop(lambda state: (state[3] < last) & state[4], step, state)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Handle an interrupt only when this is left.

    XLA compiles in a thread of its own, which crashes where an exception ends the process meanwhile; and while JAX traces, an
    exception that comes in its callback of the garbage collector is lost.
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

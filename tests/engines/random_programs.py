"""Programs of random lines: axes exchanged, split and joined, parts, products of stacks, sums, what is broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.layers import Value
from handgrad.program import Program, ProgramLine
from handgrad.rules import PRIMITIVES

ROWS, SIZES = 5, (2, 3, 4, 6, 8, 12)


class RandomProgram:
    """Draws lines one after the other, each on what the lines before have made; ``n`` is the first axis of the input."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[ProgramLine] = []
        shape = (ROWS, *(int(self.rng.choice(SIZES)) for _ in range(self.rng.integers(1, 4))))
        self.x = self.rng.normal(size=shape)
        self.values: dict[str, Any] = {"x": self.x}
        self.row_axis: dict[str, int | None] = {"x": 0}  # which axis has the rows, if any

    def program(self, length: int) -> Program:
        """Return a program of so many lines; every name is an output."""
        while len(self.lines) < length:
            self.draw()
        shape = ("n", *self.x.shape[1:])
        return Program(
            "random", tuple(self.lines), (Value("x", shape, "value", "", ""),), {}, {}, {},
            tuple(line.target for line in self.lines), "float64",
        )  # fmt: skip

    def draw(self) -> None:
        """Add a line, if the one that is drawn can be: sizes fit, and numbers stay moderate."""
        draws = (
            self._elementwise,
            self._reduced,
            self._moved,
            self._split,
            self._joined,
            self._part,
            self._whole,
            self._product,
        )
        name = list(self.values)[-1 - int(self.rng.exponential(1.5)) % len(self.values)]
        found = draws[self.rng.integers(len(draws))](name, self.values[name], self.row_axis[name])
        if found is None:
            return
        expression, row_axis = found
        with np.errstate(all="raise"):
            try:
                result = eval(expression, dict(PRIMITIVES), self.values)
            except (FloatingPointError, ValueError):
                return
        if not isinstance(result, np.ndarray) or not result.ndim or result.size > 4000:
            return
        if np.abs(result).max() > 1e3:
            return
        target = f"v{len(self.lines)}"
        self.values[target], self.row_axis[target] = result, row_axis
        self.lines.append(ProgramLine(target, "=", expression, "forward", "random", "random"))

    def _axis(self, v: Any, without: int | None = None) -> int:
        return int(self.rng.choice([axis for axis in range(v.ndim) if axis != without]))

    def _elementwise(self, name: str, v: Any, row: int | None) -> tuple[str, int | None]:
        """Combine two values that NumPy broadcasts, or change one."""
        others = [
            other for other, w in self.values.items()
            if w.ndim <= v.ndim
            and (self.row_axis[other] is None or (row is not None and self.row_axis[other] - w.ndim == row - v.ndim))
            and all(a in (1, b) for a, b in zip(w.shape[::-1], v.shape[::-1], strict=False))
        ]  # fmt: skip
        other = str(self.rng.choice(others))
        forms = [
            f"{name} * 0.5 + {other}", f"np.tanh({name}) * {other}", f"np.exp(-np.abs({name} - {other}))",
            f"np.where({name} > {other}, {name}, 0.5 * {other})", f"np.maximum({other}, {name}) / 2",
        ]  # fmt: skip
        if row != v.ndim - 1:
            forms.append(f"{name} + np.arange({v.shape[-1]}, dtype={name}.dtype)")
        if v.ndim > 1 and v.shape[-2] == v.shape[-1] and row != v.ndim - 2:
            forms.append(f"np.where(np.tri({v.shape[-1]}) > 0, {name}, -1.0)")
        return str(self.rng.choice(forms)), row

    def _reduced(self, name: str, v: Any, row: int | None) -> tuple[str, int | None] | None:
        count = int(self.rng.integers(1, v.ndim + 1))
        axes = tuple(sorted(self.rng.permutation(v.ndim)[:count].tolist()))
        kind, keepdims = self.rng.choice(["sum", "mean", "max", "min"]), bool(self.rng.integers(2))
        if not keepdims and count == v.ndim:
            return None
        left = [axis for axis in range(v.ndim) if axis not in axes]
        row = None if row in axes or row is None else row if keepdims else left.index(row)
        return f"{name}.{kind}(axis={axes}, keepdims={keepdims})", row

    def _moved(self, name: str, v: Any, row: int | None) -> tuple[str, int | None] | None:
        if v.ndim < 2:
            return None
        one, other = self.rng.permutation(v.ndim)[:2].tolist()
        return f"{name}.swapaxes({one}, {other})", {one: other, other: one}.get(row, row)  # type: ignore[arg-type]

    def _split(self, name: str, v: Any, row: int | None) -> tuple[str, int | None] | None:
        parts = int(self.rng.choice([2, 3, 4]))
        if v.ndim > 4 or row == v.ndim - 1 or v.shape[-1] % parts:
            return None
        return f"split_last({name}, {parts})", row

    def _joined(self, name: str, v: Any, row: int | None) -> tuple[str, int | None] | None:
        if v.ndim < 3 or row in (v.ndim - 1, v.ndim - 2):
            return None
        return f"join_last({name})", row

    def _part(self, name: str, v: Any, row: int | None) -> tuple[str, int | None] | None:
        axis = self._axis(v)
        if axis == row or v.shape[axis] < 2:
            return None
        start = int(self.rng.integers(0, v.shape[axis] - 1))
        stop = int(self.rng.integers(start + 1, v.shape[axis] + 1))
        index = ", ".join([":"] * axis + [f"{start}:{stop}"])
        return f"{name}[{index}]", row

    def _whole(self, name: str, v: Any, row: int | None) -> tuple[str, int | None] | None:
        axis = self._axis(v)
        if axis == row:
            return None
        return f"np.concatenate([{name} * 2.0, {name}], axis={axis})", row

    def _product(self, name: str, v: Any, row: int | None) -> tuple[str, int | None] | None:
        if v.ndim < 2:
            return None
        if row is not None and row < v.ndim - 2:
            forms = [f"{name} @ {name}.mT * 0.1", f"{name}.mT @ {name} * 0.1"]
        elif row == v.ndim - 2:
            forms = [f"{name}.mT @ {name} * 0.1"]
            row = None
        elif row is None:
            forms = [f"{name} @ {name}.mT * 0.1"]
        else:
            forms, row = [f"{name} @ {name}.mT * 0.1"], None
        return str(self.rng.choice(forms)), row


def drawn(seed: int, length: int = 14) -> tuple[Program, Any]:
    """Return a program, and its input."""
    made = RandomProgram(seed)
    program = made.program(length)
    return program, made.x

"""A network as a stand-alone script: parameters, data, the program and the training loop, on NumPy alone.

Its losses and weights are, bit for bit, those of the reference engine.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from handgrad.arguments import Count, Judged, Seed
from handgrad.errors import ConfigurationError
from handgrad.layers import INITIALISERS, Constant, Optimiser, Parameter, Schedule, Value
from handgrad.layers.initialisers import STATISTICS
from handgrad.layers.layer import field_values
from handgrad.program.printing import function_source
from handgrad.program.program import Program
from handgrad.rules import PRIMITIVES

MOST_NUMBERS = 64
"""Of an array written into a script: more than fill a few lines belong in a file."""

HEAD = '''"""{title}

Written out by handgrad: one step of training, line by line, and the loop around it. It needs NumPy only.

    python {name} [data.npz]

The file holds x (rows first) and t{weights}; with x_test and t_test the answers are scored at the end.
"""

import sys

import numpy as np

Array = np.ndarray
Generator = np.random.Generator

EPOCHS = {epochs}
BATCH_SIZE = {batch_size}
SEED = {seed}
LEARNING_RATE = {learning_rate!r}
'''

BATCH_OF = '''
def batch_of(data, rows):
    """Return what the program takes of some rows."""
    return {{
{items}    }}
'''

MAIN = """
NEEDED = {needed}  # what the answers are computed from


def main() -> None:
    with np.load(sys.argv[1] if len(sys.argv) > 1 else "data.npz", allow_pickle=False) as file:
        data = {{name: file[name] for name in file.files}}
    arrays = initialise()
{standardise}    rows, steps = len(data["x"]), -(-len(data["x"]) // BATCH_SIZE)
    rates = {schedule}
    number = 0
    for epoch in range(EPOCHS):
        order = {order}
        loss_total = loss_count = 0.0
        for start in range(0, rows, BATCH_SIZE):
            batch = batch_of(data, order[start : start + BATCH_SIZE])
            total, count = step(**batch, **arrays{numbers})
            loss_total += float(total)
            loss_count += float(count)
            number += 1
        print(f"epoch {{epoch + 1}}  loss {{loss_total / loss_count!r}}")
    if "x_test" in data:
        (answers,) = predict({x_test}, **{{name: arrays[name] for name in NEEDED}})
{score}
    np.savez("weights.npz", **arrays)


if __name__ == "__main__":
    main()
"""

SCORE = {
    "classification": """\
        answers, right = answers.argmax(axis=-1), data["t_test"]
        right = right.argmax(axis=-1) if right.ndim > answers.ndim else right
        print(f"test accuracy {(answers == right).mean():.4f}")""",
    "labels": """\
        right = data["t_test"].reshape(answers.shape) > 0.5
        print(f"test accuracy {((answers > 0.5) == right).mean():.4f}")""",
    "regression": """\
        error = answers - data["t_test"].reshape(answers.shape)
        print(f"test root mean squared error {np.sqrt((error * error).mean()):.6g}")""",
}


@dataclass(frozen=True)
class Loop(metaclass=Judged):
    """The loop around the program: epochs, batches, the learning rate of each step."""

    epochs: Count = 20
    batch_size: Count = 32
    seed: Seed = 0
    shuffle: bool = True
    schedule: Schedule = field(default_factory=Constant)
    micro_batch: Count | None = None


def write_script(
    training: Program,
    evaluation: Program,
    optimiser: Optimiser,
    loop: Loop,
    *,
    seed: int,
    task: str,
    name: str,
) -> str:
    """Return a script that trains as `handgrad.train` does; ``task`` is the loss's, for the score at the end."""
    training = training.keeping("total", "count")
    arrays = {**training.parameters, **training.states}
    written = [array.start for array in arrays.values() if not isinstance(array.start, str)]
    if any(start.size > MOST_NUMBERS for start in written):
        raise ConfigurationError(
            f"a script cannot hold an array of more than {MOST_NUMBERS} numbers that is no initialiser's"
        )
    weighted = any(value.name == "w" for value in training.inputs)
    head = HEAD.format(
        title=training.title, name=name, epochs=loop.epochs, batch_size=loop.batch_size, seed=loop.seed,
        learning_rate=optimiser.learning_rate, weights=" and w" if weighted else "",
    )  # fmt: skip
    evaluation = replace(
        evaluation,
        parameters={name: v for name, v in evaluation.parameters.items() if name in evaluation.reads},
        states={name: v for name, v in evaluation.states.items() if name in evaluation.reads},
    )
    parts = [head, *_helpers(training, evaluation, arrays.values(), loop)]
    parts += [_initialise(training, seed)]
    parts += [function_source(training, "step"), function_source(evaluation, "predict")]
    parts += [_batch_of(training), _main(training, evaluation, loop, task)]
    return "\n\n\n".join(part.strip("\n") for part in parts) + "\n"


def _helpers(
    training: Program, evaluation: Program, arrays: Iterable[Parameter], loop: Loop
) -> Iterator[str]:
    """Yield the sources of the functions that the script needs, without their decorators."""
    names = dict.fromkeys((*training.primitives, *evaluation.primitives))
    starts = dict.fromkeys(parameter.start for parameter in arrays if isinstance(parameter.start, str))
    fits = dict.fromkeys(parameter.fit[1] for parameter in arrays if parameter.fit is not None)
    functions = [PRIMITIVES[name] for name in names] + [INITIALISERS[name] for name in starts]
    for function in (*functions, *(STATISTICS[name] for name in fits), loop.schedule.function):
        lines = inspect.getsource(function).splitlines()
        yield "\n".join(line for line in lines if not line.startswith("@"))


def _initialise(program: Program, seed: int) -> str:
    lines = ["def initialise():", '    """Return parameters, states and slots."""']
    lines += [f"    generator = np.random.default_rng({seed})", "    arrays = {}"]
    for name, parameter in {**program.parameters, **program.states}.items():
        if isinstance(parameter.start, str):
            given = f"generator, {parameter.shape}, {parameter.fan_in}, {parameter.fan_out}"
            lines.append(f'    arrays["{name}"] = {parameter.start}({given}).astype(np.{program.dtype})')
        else:
            lines.append(f'    arrays["{name}"] = np.array({parameter.start.tolist()}, np.{program.dtype})')
    for name, shape in program.slots.items():
        lines.append(f'    arrays["{name}"] = np.zeros({shape}, np.{program.dtype})')
    return "\n".join([*lines, "    return arrays"])


def _converted(value: Value, rows: str, dtype: str) -> str:
    """Return the expression that makes an input of a program from the data, in the type it computes in."""
    wanted = "int64" if value.whole else dtype
    array = f"np.ascontiguousarray({rows}, np.{wanted})"
    # a single value for each row, (n,), fits an output of one feature, (n, 1)
    sizes = ", ".join(map(str, (-1, *value.shape[1:])))
    return f"{array}.reshape({sizes})" if value.kind == "target" else array


def _batch_of(program: Program) -> str:
    rows = {value: f'data["{value.name}"][rows]' for value in program.inputs}
    items = (f'        "{v.name}": {_converted(v, given, program.dtype)},\n' for v, given in rows.items())
    return BATCH_OF.format(items="".join(items))


def _rows_of(fitted: Parameter) -> str:
    """Return what statistics are of, x or t, with one column for each."""
    assert fitted.fit is not None
    return 'data["x"]' if fitted.fit[0] == "x" else f'data["t"].reshape(-1, {fitted.shape[0]})'


def _main(training: Program, evaluation: Program, loop: Loop, task: str) -> str:
    numbers = {"learning_rate": "float(rates[number])", "step": "number + 1", "seed": "SEED"}
    options = "".join(f", {value!r}" for value in field_values(loop.schedule).values())
    standardise = "".join(
        f'    arrays["{name}"][...] = {state.fit[1]}({_rows_of(state)})[{state.fit[2]}]\n'
        for name, state in training.states.items()
        if state.fit is not None
    )
    return MAIN.format(
        standardise=standardise,
        schedule=f"{loop.schedule.function.__name__}(LEARNING_RATE, EPOCHS, steps{options})",
        order="np.random.default_rng([SEED, epoch]).permutation(rows)" if loop.shuffle else "np.arange(rows)",
        numbers="".join(f", {name}={numbers[name]}" for name in training.scalars),
        x_test=_converted(evaluation.inputs[0], 'data["x_test"]', evaluation.dtype),
        needed=(*evaluation.parameters, *evaluation.states),
        score=SCORE[task],
    )

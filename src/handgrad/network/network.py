"""A network: layers, a loss, the arrays they keep, and the program they are written out as."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from handgrad.arguments import Count, Seed, judged
from handgrad.arrays import Array, LazyRows, as_array, is_mapped, is_sparse
from handgrad.engines import ReferenceEngine
from handgrad.engines.engine import rows_at_a_time
from handgrad.engines.reference import BoundReference
from handgrad.errors import ConfigurationError, DataError, HandgradError, ShapeError
from handgrad.layers import SGD, Graph, Layer, Loss, Node, Optimiser, Sequential, Value
from handgrad.layers.graph import is_reduction
from handgrad.layers.initialisers import STATISTICS
from handgrad.network import array_checks
from handgrad.network.array_checks import Arrays
from handgrad.notebook_html import HTMLReprMixin, heading, table
from handgrad.program import Loop, Program, ProgramLine
from handgrad.program.builder import write_evaluation, write_loss, write_training
from handgrad.program.script import write_script
from handgrad.rules import Rule, Shape, Size, identity, show_shape, standardised_targets, unstandardise

DType = Literal["float32", "float64"]

LARGE = 2**28
"""Bytes of rows above which their statistics are taken without a copy of them."""

MOST_SIZES = 9  # in a title; of more, those at both ends


class Network(HTMLReprMixin):
    """Layers one after another, a loss, and the arrays they keep.

    Shapes are inferred and checked here, once.

    Parameters
    ----------
    *layers
        In order; `Residual` and `Sequential` hold layers of their own.
    loss
        What training makes small; a network without one only predicts.
    inputs
        The shape of one row, where the layers do not determine it: ``64``, or ``(7, 64)`` for rows of 7 by 64.
    seed
        Of the weights.
    dtype
        "float32" or "float64".

    Raises
    ------
    ShapeError
        When two layers do not fit; it names both, the axis and both sizes.

    Examples
    --------
    >>> from handgrad import Linear, Network, ReLU, SoftmaxCrossEntropy
    >>> network = Network(Linear(64, 32), ReLU(), Linear(32, 10), loss=SoftmaxCrossEntropy())
    >>> network
    Network(Linear(64, 32), ReLU(), Linear(32, 10), loss=SoftmaxCrossEntropy())
    >>> sorted(network.parameters), network.parameters["W2"].shape
    (['W1', 'W2', 'b1', 'b2'], (32, 10))
    """

    @judged
    def __init__(
        self,
        *layers: Layer,
        loss: Loss | None = None,
        inputs: Count | tuple[Count, ...] | None = None,
        seed: Seed = 0,
        dtype: DType = "float32",
    ) -> None:
        if not layers:
            raise ConfigurationError("a network needs a layer", fix="for example Network(Linear(64, 10))")
        self.body = Sequential(*layers)
        self.loss, self.seed, self.dtype = loss, seed, dtype
        self.row = self._row(inputs)
        self._graphs: dict[bool, tuple[Graph, tuple[Value, ...], Value, Value | None]] = {}
        self.graph()
        self._answers: dict[bool, BoundReference] = {}

    @cached_property
    def _drawn(self) -> tuple[Arrays, Arrays]:
        """Parameters and states, drawn when they are first asked for: printing a program needs none."""
        graph = self.graph()
        arrays = Program("", (), (), graph.parameters, graph.states, {}, (), self.dtype).initial(self.seed)
        parameters, states = (
            {name: arrays[name] for name in kept} for kept in (graph.parameters, graph.states)
        )
        return Arrays(parameters), Arrays(states)

    @property
    def parameters(self) -> Arrays:
        """The arrays that gradients train, by name; training changes them in place."""
        return self._drawn[0]

    @property
    def states(self) -> Arrays:
        """The other arrays that the network keeps, by name."""
        return self._drawn[1]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out graphs and the functions made from programs: a copy makes its own."""
        return {**vars(self), "_answers": {}, "_graphs": {}}

    def __repr__(self) -> str:
        shown = [repr(layer) for layer in self.body.layers]
        shown += [f"loss={self.loss!r}"] if self.loss is not None else []
        return f"Network({', '.join(shown)})"

    def _repr_html_(self) -> str:
        rows = []
        for node in self.nodes():
            keeps = [value for value in node.inputs if value.kind in ("parameter", "state")]
            takes = [value for value in node.inputs if value not in keeps]
            named = (
                ", ".join(f"{value.name} {show_shape(value.shape)}" for value in values)
                for values in ([node.output], takes, keeps)
            )
            rows.append((node.layer, *named))
        head = "" if self.loss is None else f" · loss {self.loss!r}"
        columns = ("layer", "makes", "from", "keeps")
        return heading(f"{self.title}{head}") + table(columns, rows, code=(1, 2, 3))

    def _row(self, inputs: int | tuple[int, ...] | None) -> tuple[int, ...]:
        if isinstance(inputs, int):
            return (inputs,)
        row = inputs if inputs is not None else self.body.input_shape()
        if row is None:
            raise ConfigurationError(
                f"the layers do not determine how long a row is: {self!r}",
                fix="give inputs=64 (or inputs=(7, 64)), or begin with Linear(64, …)",
            )
        return tuple(row)

    def _connect(self, *, weighted: bool) -> tuple[Graph, tuple[Value, ...], Value, Value | None]:
        """Return the graph with its inputs, the output and the loss: built once, with row weights and without."""
        if weighted in self._graphs:
            return self._graphs[weighted]
        graph = Graph()
        x = graph.input("x", ("n", *self.row), "input")
        output = self.body.connect(graph, x)
        if any(node.reads_indices(x) for node in graph.nodes):
            x = replace(x, kind="index")
        if self.loss is None:
            self._graphs[weighted] = graph, (x,), output, None
            return self._graphs[weighted]
        graph.part, graph.origin = "loss", repr(self.loss)
        shape, kind = self.loss.target(output.shape)
        t = graph.input("t", shape, kind)
        w = graph.input("w", shape if kind == "class" else output.shape[:-1], "weight") if weighted else None
        loss = self.loss.connect(graph, *self._standardised(graph, output, t), w)
        self._check_loss(graph, loss, w)
        self._graphs[weighted] = graph, (x, t) if w is None else (x, t, w), output, loss
        return self._graphs[weighted]

    def _standardised(self, graph: Graph, output: Value, t: Value) -> tuple[Value, Value]:
        """Return what the loss compares: after a `StandardiseTargets`, what goes into it, and standardised targets."""
        *others, last = graph.nodes
        if any(node.rule is unstandardise for node in others):
            raise ConfigurationError("StandardiseTargets has layers after it", fix="put it last")
        if last.rule is not unstandardise:
            return output, t
        assert self.loss is not None
        if self.loss.task != "regression" or self.loss.least is not None:
            raise ConfigurationError(
                f"{self.loss!r}: StandardiseTargets would make other numbers of its targets",
                fix="leave it out",
            )
        z, *statistics = last.inputs
        return z, graph.apply(standardised_targets, t, *statistics)

    def _check_loss(self, graph: Graph, loss: Value, w: Value | None) -> None:
        """Check what a loss of the user's own has connected."""
        last, problem = graph.nodes[-1].rule, ""
        if loss.shape != () or not is_reduction(last):
            problem = f"its last rule, {last.name}, is no reduction to one loss with its total and count"
        elif w is not None and not any(w in node.inputs for node in graph.nodes):
            problem = "the rows have weights, and its connect makes no use of them"
        if problem:
            raise ConfigurationError(
                f"{self.loss!r}: {problem}",
                fix="end its connect with handgrad.layers.reduce_to_mean(graph, l, w)",
            )

    @cached_property
    def output_shape(self) -> Shape:
        """The shape of the output for n rows."""
        return self._connect(weighted=False)[2].shape

    @property
    def title(self) -> str:
        """What the network is, in one line."""
        sizes = [str(self.row[-1]) if self.row else "index"]
        sizes += [str(size) for node in self.nodes() if (size := _width(node)) is not None]
        if len(sizes) > MOST_SIZES:
            sizes[MOST_SIZES // 2 : -MOST_SIZES // 2] = ["…"]
        count = sum(math.prod(each.shape) for each in self.graph().parameters.values())
        return f"network {' → '.join(sizes)} · {count:,} parameters"

    @judged
    def program(
        self, optimiser: Optimiser | None = None, *, weighted: bool = False, micro_batch: Count | None = None
    ) -> Program:
        """Write the network out as one straight-line program.

        Parameters
        ----------
        optimiser
            Whose update lines stand at the end; plain `SGD` when none is given.
        weighted
            Whether each row has a weight w in the loss.
        micro_batch
            So many rows at a time: gradients add up over them, and the update at the end is that of the whole batch.

        Returns
        -------
        Program
            One training step; for a network without a loss, the forward lines. Print it.
        """
        graph, inputs, output, loss = self._connect(weighted=weighted)
        if loss is None:
            return write_evaluation(graph, inputs, output, None, title=self.title, dtype=self.dtype)
        return write_training(
            graph, inputs, loss, optimiser or SGD(),
            title=self.title, dtype=self.dtype, micro_batch=micro_batch or 0,
        )  # fmt: skip

    def nodes(self, *, weighted: bool = False) -> tuple[Node, ...]:
        """Return the rules that `program` writes out, in order, with the names of what goes in and comes out."""
        graph, _, _, loss = self._connect(weighted=weighted)
        return tuple(node for node in graph.nodes if loss is None or node.rule is not unstandardise)

    def graph(self) -> Graph:
        """Return the graph of the layers and the loss: its nodes, and which layer keeps which arrays.

        Examples
        --------
        >>> from handgrad import Linear, Network, ReLU
        >>> network = Network(Linear(5, 3), ReLU(), Linear(3, 2))
        >>> network.graph().names_of(network.body.layers[2])
        {'W': 'W2', 'b': 'b2'}
        """
        return self._connect(weighted=False)[0]

    def evaluation_program(self, *, prediction: bool = False) -> Program:
        """Write out the forward lines outside training, with the loss's prediction at the end if wanted."""
        graph, inputs, output, _ = self._connect(weighted=False)
        last = self._prediction() if prediction else None
        return write_evaluation(graph, inputs[:1], output, last, title=self.title, dtype=self.dtype)

    def loss_program(self, *, weighted: bool = False) -> Program:
        """Write out the forward lines outside training with the loss's sum and count, and its prediction at the end."""
        self._need_loss()
        graph, inputs, output, _ = self._connect(weighted=weighted)
        return write_loss(graph, inputs, output, self._prediction(), title=self.title, dtype=self.dtype)

    def _prediction(self) -> Rule | None:
        """Return the rule that makes a prediction of the output, where it is not the output itself."""
        return None if self.loss is None or self.loss.prediction is identity else self.loss.prediction

    @judged
    def write(
        self,
        optimiser: Optimiser | None = None,
        loop: Loop | None = None,
        *,
        weighted: bool = False,
        name: str = "train.py",
    ) -> str:
        """Return a stand-alone script, needing NumPy only, that trains this network from its seed.

        Its losses and weights equal the reference engine's bit for bit.

        Parameters
        ----------
        optimiser, loop
            As the training's; plain `SGD` and `Loop()` when not given.
        weighted
            Whether the data has row weights w.
        name
            The script's file name, for its own first lines.
        """
        self._need_loss()
        assert self.loss is not None
        optimiser, prediction, loop = (
            optimiser or SGD(),
            self.evaluation_program(prediction=True),
            loop or Loop(),
        )
        training = self.program(optimiser, weighted=weighted, micro_batch=loop.micro_batch)
        return write_script(
            training, prediction, optimiser, loop, seed=self.seed, task=self.loss.task, name=name
        )

    @judged
    def standardise(self, x: ArrayLike, t: ArrayLike | None = None, rows: Array | None = None) -> None:
        """Fit `Standardise` on ``x`` and `StandardiseTargets` on ``t``, or on some of their rows."""
        data = {"x": x} if t is None else {"x": x, "t": t}
        fits = {
            name: kept.fit for name, kept in self.graph().states.items() if kept.fit and kept.fit[0] in data
        }
        used = {of: as_array(of, data[of]) for of in {of for of, _, _ in fits.values()}}
        if rows is not None:
            used = {of: _rows_of(values, rows) for of, values in used.items()}
        with np.errstate(over="ignore"):  # training names data that is too large
            fitted = {
                (of, kind): STATISTICS[kind](used[of]) for of, kind in {fit[:2] for fit in fits.values()}
            }
            for name, (of, kind, which) in fits.items():
                self.states[name][...] = fitted[of, kind][which]

    @property
    def arrays(self) -> dict[str, Array]:
        """Everything the network keeps, by name: parameters and states."""
        return {**self.parameters, **self.states}

    def arrays_for(self, program: Program) -> dict[str, Array]:
        """Return what one of its programs is bound to: its arrays, no copies, and the optimiser's slots, all 0."""
        return self.arrays | {name: np.zeros(shape, self.dtype) for name, shape in program.slots.items()}

    @judged
    def output(self, x: ArrayLike, *, batch_size: Count | None = None) -> Array:
        """Return the network's output for each row, outside training: logits for a classifier.

        Parameters
        ----------
        x
            Rows, (n, …) as the network's input.
        batch_size
            How many rows are computed at a time: 4,096 unless given, or fewer where a row has large intermediates.
        """
        return self._run(x, batch_size, prediction=False)

    @judged
    def predict(self, x: ArrayLike, *, batch_size: Count | None = None) -> Array:
        """Return the network's answer for each row: class probabilities, probabilities of a yes, or values.

        Parameters
        ----------
        x
            Rows, (n, …) as the network's input.
        batch_size
            How many rows are computed at a time: 4,096 unless given, or fewer where a row has large intermediates.
        """
        return self._run(x, batch_size, prediction=True)

    def __call__(self, x: ArrayLike) -> Array:
        """Return `output`: what the layers make of each row, outside training; logits for a classifier."""
        return self.output(x)

    @judged
    def gradients(
        self, x: ArrayLike, t: ArrayLike, sample_weight: ArrayLike | None = None, *, seed: Seed = 0
    ) -> dict[str, Array]:
        """Return the gradient of the loss with respect to each parameter, by the parameter's name.

        Parameters
        ----------
        x, t, sample_weight
            Rows, targets, and how much each row counts, if they differ.
        seed
            Of the random draws, when there is dropout.

        Examples
        --------
        >>> import numpy as np
        >>> from handgrad import HalfSquaredError, Linear, Network
        >>> network = Network(Linear(1, 1, initialiser="ones"), loss=HalfSquaredError())
        >>> network.gradients(np.array([[2.0]]), np.array([[5.0]]))
        {'W1': array([[-6.]], dtype=float32), 'b1': array([-3.], dtype=float32)}
        """
        batch = self.check_batch(x, t, sample_weight)
        program = self.program(weighted=sample_weight is not None).without_updates()
        outputs = ReferenceEngine().bind(program, self.arrays).run(**batch, seed=seed, step=1)
        return {name: outputs[f"d{name}"] for name in self.parameters if f"d{name}" in outputs}

    @judged
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network to one file: layers, loss, parameters and buffers, as safetensors.

        Raises
        ------
        RunError
            When the file cannot be written; one that is there is replaced as a whole, or not at all.

        Examples
        --------
        >>> from handgrad import Linear, Network
        >>> Network(Linear(3, 2)).save("network.safetensors")
        >>> Network.load("network.safetensors")
        Network(Linear(3, 2))
        """
        from handgrad.network.saving import save_network  # with msgspec and safetensors

        save_network(self, Path(path))

    @classmethod
    @judged
    def load(cls, path: str | os.PathLike[str], *, own: Sequence[type[Layer] | type[Loss]] = ()) -> Network:
        """Read a network that `save` wrote; no code is run from the file.

        Parameters
        ----------
        path
            The file.
        own
            Layers and losses of your own that the network has.

        Raises
        ------
        RunError
            When the file is missing, damaged or holds no network, or a layer is not handgrad's and not in ``own``.
        """
        from handgrad.network.saving import load_network  # with msgspec and safetensors

        return load_network(Path(path), own)

    def check_batch(
        self, x: ArrayLike, t: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> dict[str, Array]:
        """Return rows, targets and row weights, if there are any, by name, each checked."""
        self._need_loss()
        x = self.check_rows(x, t)
        batch = {"x": x, "t": self.check_targets(t, x.shape[0])}
        if sample_weight is not None:
            batch["w"] = self.check_sample_weight(sample_weight, x.shape[0])
        return batch

    def check_rows(self, x: ArrayLike, t: ArrayLike | None = None) -> Array:
        """Return ``x`` as an array, or raise an error when its rows are not the network's input.

        With the targets ``t`` beside it, the error recognises that the two are swapped.
        """
        if is_sparse(x) and (line := self.dense_use) is not None:
            raise DataError(
                f"x is sparse, and `{line}` ({line.layer}) does more with it than `x @ W`",
                fix="begin with a Linear layer, its layout 'in_out', or give x.toarray(); columns are scaled without an "
                "offset, beforehand",
            )
        try:
            return array_checks.check_rows(x, self.row, self.entries, first=self.body.layers[0])
        except (ShapeError, DataError):
            if t is not None and self._are_swapped(x, t):
                raise ShapeError(
                    f"x and t are swapped: x has rows of {show_shape(np.shape(x)[1:])}, which are targets, "
                    f"and t of {show_shape(np.shape(t)[1:])}, which are rows",
                    fix="give the rows first, then the targets",
                ) from None
            raise

    def _are_swapped(self, x: ArrayLike, t: ArrayLike) -> bool:
        """Whether rows and targets fit in each other's place, and the targets not in their own."""
        with suppress(HandgradError):
            self.check_targets(x, len(self.check_rows(t)))
            try:
                self.check_targets(t, len(np.asarray(t)))
            except HandgradError:
                return True
        return False

    @cached_property
    def dense_use(self) -> ProgramLine | None:
        """The first line that does more with the rows than multiply them by a matrix, which needs them dense."""
        return next((line for line in self.program().lines if not line.only_multiplies("x")), None)

    @cached_property
    def entries(self) -> int | None:
        """How many rows the table has that the input's indices look up; None when it holds values."""
        graph, (x, *_), _, _ = self._connect(weighted=False)
        tables = (
            v
            for node in graph.nodes
            if node.reads_indices(x)
            for v in node.inputs
            if v.kind in ("parameter", "state")
        )
        return min((int(table.shape[0]) for table in tables), default=None)

    def check_targets(self, t: ArrayLike, rows: int) -> Array:
        """Return the targets in the shape the loss takes, or raise an error that names both shapes.

        A single value for each row, (n,), fits an output of one feature, (n, 1).
        """
        self._need_loss()
        assert self.loss is not None
        return array_checks.check_targets(t, rows, self.loss, self.output_shape)

    def check_sample_weight(self, sample_weight: ArrayLike, rows: int) -> Array:
        """Return the row weights, or raise an error; (n,) also fits rows of several answers, (n, time)."""
        shape = next(value.shape for value in self._connect(weighted=True)[1] if value.name == "w")
        return array_checks.check_sample_weight(sample_weight, rows, shape)

    def _need_loss(self) -> None:
        if self.loss is None:
            raise ConfigurationError("the network has no loss", fix="Network(…, loss=SoftmaxCrossEntropy())")

    def _run(self, x: ArrayLike, batch_size: int | None, *, prediction: bool) -> Array:
        x = self.check_rows(x)
        if prediction not in self._answers:  # a network's layers and arrays stay the same objects
            program = self.evaluation_program(prediction=prediction)
            self._answers[prediction] = ReferenceEngine().bind(program, self.arrays)
        bound = self._answers[prediction]
        (name,) = bound.program.outputs
        if not x.shape[0]:
            made = {line.target: line.shape or () for line in bound.program.lines}
            return np.zeros((0, *map(int, made.get(name, ("n", *self.row))[1:])), self.dtype)
        if is_mapped(x):
            x = LazyRows(x)
        size = batch_size or rows_at_a_time(bound.program)
        starts = range(0, x.shape[0], size)
        return np.concatenate([bound.run(x=x[start : start + size])[name] for start in starts])


def _width(node: Node) -> Size | None:
    """Return the features a node makes, when they are its own doing: it has a matrix or a table of weights."""
    changes = any(value.kind == "parameter" and len(value.shape) > 1 for value in node.inputs)
    return node.output.shape[-1] if changes and node.part == "forward" and node.output.shape else None


def _rows_of(values: Array, rows: Array) -> Any:
    """Return some rows to take statistics of; large ones without a copy."""
    if values.ndim == 2 and (is_mapped(values) or values.nbytes > LARGE):
        return LazyRows(values, rows)
    return values[rows] if len(rows) < len(values) else values

"""A Jacobian as a record: full, its structure, the stored form with its proof, and why, in words."""

from __future__ import annotations

import numpy as np

from handgrad.explaining.jacobians import Between
from handgrad.explaining.ledger import AxisNames
from handgrad.explaining.naming import name_stored
from handgrad.explaining.record import AddedTooEarly, Jacobian
from handgrad.explaining.samples import sample
from handgrad.explaining.structures import EXACT, Stored, proof, recognise
from handgrad.explaining.tracing import Trace

BY_DIFFERENCES = 1e-7  # what is zero in a Jacobian that was found by differences


def describe(trace: Trace, axes: AxisNames, output: str, of: str, example: int | None = None) -> Jacobian:
    """Return the Jacobian of one value with respect to an earlier one.

    Parameters
    ----------
    trace, axes
        The program on its batch, and its letters.
    output, of
        The two values.
    example
        One row, or None for the whole batch.
    """
    between = Between(trace, output, of, example)
    full = between.full()
    letters = axes.of(output)[len(between.output_place) :], axes.of(of)[len(between.input_place) :]
    outputs = len(letters[0])
    stored = recognise(full, outputs, EXACT if between.is_analytic else BY_DIFFERENCES)
    name = name_stored(between, stored)
    return Jacobian(
        output=output,
        input=of,
        example=example,
        output_sizes=full.shape[:outputs],
        input_sizes=full.shape[outputs:],
        structure=stored.kind,
        stored=name,
        explanation=_why(between, stored, letters[0], name, full.size),
        stored_numbers=stored.numbers,
        full_numbers=full.size,
        stored_operations=stored.operations,
        full_operations=full.size,
        proof=proof(stored, full, np.random.default_rng(0)),
        sample=sample(full.reshape(int(np.prod(full.shape[:outputs])), -1)),
        output_axes=letters[0],
        input_axes=letters[1],
        added=_added(between),
    )


def _why(between: Between, stored: Stored, letters: tuple[str, ...], name: str, full: int) -> str:
    """Say for a reader why the stored form is enough."""
    output, of = between.output, between.input
    saved = f"{stored.numbers:,} number{'s' * (stored.numbers != 1)} in place of {full:,}"
    along = ", ".join(letters[stored.outputs.index(axis)] for axis in stored.shared if stored.sizes[axis] > 1)
    places = int(np.prod([stored.sizes[axis] for axis in stored.shared]))
    match stored.kind:
        case "zero":
            return f"Nothing in {output} moves with {of} here: every entry is 0."
        case "diagonal":
            product = "unchanged" if name == "I" else f"times {name[5:-1]}, entry by entry"
            return (
                f"Each entry of {output} depends on the entry of {of} at its own place and on no other: off the "
                f"diagonal all is 0. A diagonal matrix times a vector is an elementwise product, so d{of} is "
                f"d{output} {product}. {saved}."
            )
        case "kronecker":
            block = name.removesuffix(" ⊗ I")
            return (
                f"Along {along}, an entry of {output} meets only the entries of {of} at its own place, and in the "
                f"same way at all {places:,} places: one block, {block}, is repeated, and the rest is 0. {saved}."
            )
        case "block diagonal":
            return (
                f"Along {along}, an entry of {output} meets only the entries of {of} at its own place: {places:,} "
                f"blocks, each its own, and 0 outside of them. Together they are {name}. {saved}."
            )
        case "diagonal plus low rank":
            rank = stored.low_rank[0].shape[-1] if stored.low_rank else 0
            where = f"Along {along}, each of {places:,} blocks" if along else "The matrix"
            return (
                f"Every entry of {output} depends on every entry of {of}{' of its block' * bool(along)}, but beside "
                f"its own only through {rank} number{'s' * (rank != 1)} that all share. {where} is a diagonal and a "
                f"matrix of rank {rank}: {name}. {saved}."
            )
    if full == 1:
        return f"{output} and {of} are one number each here, and so is the Jacobian: {name}."
    return f"Every entry of {output} depends on every entry of {of}, each in its own way: {full:,} numbers."


def _added(between: Between) -> AddedTooEarly | None:
    """Add the rows up before the chain rule, and after, where the rows share the input."""
    trace, output, of = between.trace, between.output, between.input
    upstream = trace.exact.get(f"d{output}")
    shared = trace.shapes[output][:1] == ("n",) and trace.shapes[of][:1] != ("n",)
    if upstream is None or not shared or trace.rows < 2 or not between.is_analytic:
        return None
    right = between.pull(upstream)
    wrong = between.pull(np.broadcast_to(upstream.sum(axis=0), upstream.shape))
    sizes = float(np.linalg.norm(right)), float(np.linalg.norm(wrong))
    if not np.all(np.isfinite(sizes)):
        return None
    apart = float(np.linalg.norm(wrong - right)) / (sizes[0] or 1.0)
    return AddedTooEarly(
        sample(right, 24),
        sample(wrong, 24),
        apart,
        f"All {trace.rows} rows share {of}, so what each sends back adds up: row n's Jacobian J_n times row n's "
        f"gradient, Σ_n J_nᵀ d{output}_n, of norm {sizes[0]:.4g}. Adding first, (Σ_n J_n)ᵀ (Σ_n d{output}_n), pairs "
        f"the Jacobian of every row with the gradient of every other: norm {sizes[1]:.4g}, off by {apart:.3g} times "
        "the right one. Multiply, then add.",
    )

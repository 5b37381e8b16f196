"""Looking rows up in a table."""

from handgrad.rules.kinds import Index
from handgrad.rules.primitives import add_rows_at
from handgrad.rules.rule import rule

__all__ = ["embedding"]


@rule("N..., V D -> N... D")
def embedding(i: Index, E):
    """Look up a row of the table for each index: ``h = E[i]``.

    Shapes
        i (N...,) whole numbers from 0 to V - 1, E (V, D) -> h (N..., D)
    Gradient
        dE[v] = Σ over the places where i = v of dh: repeated indices add up.
    Differs
        ``dE[i] += dh`` in NumPy keeps only the last of repeated indices.
    Source
        Bengio, Ducharme, Vincent, Jauvin, A Neural Probabilistic Language Model, JMLR 3 (2003).
    """
    h = E[i]
    return h


@embedding.backward
def embedding_backward(dh, i, E):
    dE = add_rows_at(i, dh, E)  # a row looked up several times adds its gradients up
    return dE

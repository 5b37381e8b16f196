"""The vocabulary: every mistake the checker names, with its code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """A kind of mistake in a hand-written gradient.

    Attributes
    ----------
    code
        Its name in reports: ``"wrong-sign"``.
    title
        What is wrong, in a few words.
    shows
        What people notice of it.
    why
        Why people make it.
    """

    code: str
    title: str
    shows: str
    why: str


MISTAKES: dict[str, Mistake] = {
    mistake.code: mistake
    for mistake in (
        Mistake(
            "wrong-sign",
            "the gradient, or a term of it, has the opposite sign",
            "the loss rises from the first step on",
            "target minus prediction is as natural to write as prediction minus target",
        ),
        Mistake(
            "constant-factor",
            "off by a constant such as 2 or 1/2",
            "training works, with a learning rate nobody else uses",
            "the 2 of a square and the ½ in front of a loss cancel, and one of them was left",
        ),
        Mistake(
            "batch-mean-vs-sum",
            "off by the number of rows, or its inverse",
            "the best learning rate depends on the batch size",
            "1/N belongs to the loss and nowhere else; it was written twice, or not at all",
        ),
        Mistake(
            "transposed",
            "a transpose is missing, or one too many",
            "fails as soon as a layer is not square",
            "square matrices, and symmetric ones, fit either way: the shapes do not object",
        ),
        Mistake(
            "elementwise-instead-of-matmul",
            "`*` stands where the chain rule asks for `@`",
            "fails as soon as the sizes differ",
            "the scalar chain rule multiplies, and so does broadcasting",
        ),
        Mistake(
            "broadcast-not-summed",
            "what was broadcast forward is not summed backward",
            "the gradient has a batch axis that its argument has not",
            "one value served many rows: each row sends back a share, and the shares add up",
        ),
        Mistake(
            "wrong-axis",
            "summed or repeated over the wrong axis",
            "right only where two axes are equally long",
            "axes of one length can be exchanged without an error",
        ),
        Mistake(
            "ignores-upstream",
            "the upstream gradient is not used, or taken to be ones",
            "right in a layer by itself, wrong in a network",
            "the local derivative was taken for the whole chain, or the output for the loss",
        ),
        Mistake(
            "missing-local-derivative",
            "a factor of the chain is left out",
            "the layers below learn too fast, or the wrong thing",
            "the error was handed on before it was multiplied by the activation's slope",
        ),
        Mistake(
            "wrong-evaluation-point",
            "the right derivative, at the wrong value",
            "nearly right for small inputs, worse with larger ones",
            "σ' = σ (1 - σ) is written in the output, and the input was stored",
        ),
        Mistake(
            "wrong-local-derivative",
            "another function's derivative, or a mistaken formula",
            "wrong by a factor that depends on the entry",
            "the formula was remembered rather than derived",
        ),
        Mistake(
            "missing-term",
            "a path or a summand is left out",
            "nearly right, and worse the more the missing path matters",
            "a value reaches the output on several ways, and one of them was forgotten",
        ),
        Mistake(
            "extra-term",
            "a term or a factor too many",
            "learning is slow where the network is sure of itself",
            "a derivative that had already cancelled was multiplied once more",
        ),
        Mistake(
            "overwritten-not-accumulated",
            "a value used twice gets one of its gradients instead of their sum",
            "one use of a shared value does not learn",
            "assignment where addition was meant: `=` for `+=`, or repeated indices in `d[i] += g`",
        ),
        Mistake(
            "averaged-batch",
            "rows are averaged or summed before they are multiplied",
            "right for one row, and wrong for two",
            "the mean of products is not the product of means",
        ),
        Mistake(
            "stale-or-mutated-state",
            "arguments are changed, weights already updated, or another call has another answer",
            "right when called once",
            "an update, or an operation in place, came before the gradient was done",
        ),
        Mistake(
            "not-proportional",
            "the gradient does not scale with the upstream gradient",
            "right in a layer by itself, and wrong where the loss is averaged over many rows, or scaled",
            "the error was clipped, rounded, cut off or normalised on its way through backward",
        ),
        Mistake(
            "nondeterministic",
            "fresh randomness in backward",
            "another gradient at every call",
            "the mask was drawn again instead of kept",
        ),
        Mistake(
            "wrong-shape",
            "the gradient's shape is not its argument's",
            "an update raises, or changes a parameter's shape",
            "the gradient of a value always has the value's shape",
        ),
        Mistake(
            "dtype-or-overflow",
            "NaN, infinity or lost precision where the true gradient is finite",
            "NaN after some hundred steps",
            "an intermediate result overflowed or cancelled, though the gradient does not",
        ),
        Mistake(
            "swapped-gradients",
            "each right, returned for each other's argument",
            "each of two arguments learns what the other should",
            "a tuple or a dictionary was put together in another order",
        ),
        Mistake(
            "zero-gradient",
            "zero where it is not: a path is cut",
            "a parameter never moves",
            "a mask that is never true, or a result that was computed and not returned",
        ),
    )
}

"""The vocabulary: every mistake the checker names, with its code, and what it takes to name one."""

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


@dataclass(frozen=True)
class Diagnosis:
    """A mistake that would explain the numbers."""

    code: str
    arguments: tuple[str, ...]  # whose gradients it explains
    evidence: str
    cost: float = 0.0  # how far-fetched it is: the lowest is named first
    place: str = ""  # the line of forward or backward where it was made
    alternative: str = ""  # the code of another fair name for the same


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
            "training works, with an unusual learning rate",
            "a 2, a ½ or another scale of forward was left out of the derivative, or taken twice",
        ),
        Mistake(
            "batch-mean-vs-sum",
            "off by the number of rows or its inverse",
            "the best learning rate depends on the batch size",
            "1/N belongs to the loss and nowhere else; it was written twice, or not at all",
        ),
        Mistake(
            "transposed",
            "a transpose is missing or one too many",
            "fails as soon as a layer is not square",
            "the shapes of square matrices fit either way",
        ),
        Mistake(
            "elementwise-instead-of-matmul",
            "`*` is written where the chain rule needs `@`",
            "fails as soon as the sizes differ",
            "the scalar chain rule multiplies, and so does broadcasting",
        ),
        Mistake(
            "broadcast-not-summed",
            "an argument broadcast in forward is not summed in backward",
            "the gradient has a batch axis that its argument does not have",
            "one value was used in many rows, and its gradient is the sum over them",
        ),
        Mistake(
            "wrong-axis",
            "summed or repeated over the wrong axis",
            "right only where two axes are equally long",
            "axes of equal length can be exchanged without an error",
        ),
        Mistake(
            "wrong-position",
            "right numbers at the wrong positions: flipped, shifted, or put in another order",
            "the shapes fit, and the gradient points nowhere",
            "a kernel was flipped, axes were joined in another order, or a window was off by one",
        ),
        Mistake(
            "ignores-upstream",
            "the upstream gradient is not used, or assumed to be ones",
            "right in a layer by itself, wrong in a network",
            "the local derivative was mistaken for the whole chain, or the output for the loss",
        ),
        Mistake(
            "missing-local-derivative",
            "a factor of the chain rule is left out",
            "the layers below learn too fast, or the wrong thing",
            "the error was propagated without the activation's derivative",
        ),
        Mistake(
            "wrong-evaluation-point",
            "the right derivative, at the wrong value",
            "nearly right for small inputs, worse with larger ones",
            "the formula takes another value: σ' = σ (1 - σ) the output, dWh of a recurrence the state before",
        ),
        Mistake(
            "wrong-local-derivative",
            "the derivative of another function, or a wrong formula",
            "wrong by a factor that depends on the entry",
            "the formula was remembered rather than derived",
        ),
        Mistake(
            "missing-term",
            "a path or a summand is left out",
            "nearly right where the missing path is small",
            "a value reaches the output by several paths, and one was forgotten",
        ),
        Mistake(
            "extra-term",
            "a term or a factor too many",
            "learning is slow where the network is confident",
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
            "rows are averaged or summed before the product",
            "right for one row, and wrong for two",
            "the mean of products is not the product of means",
        ),
        Mistake(
            "stale-or-mutated-state",
            "arguments are changed, weights already updated, or calls depend on one another",
            "right when called once",
            "an update, an in-place operation or an earlier call changed what backward reads",
        ),
        Mistake(
            "not-proportional",
            "the gradient does not scale with the upstream gradient",
            "right in a layer by itself, and wrong where the loss is averaged over many rows, or scaled",
            "the gradient was clipped, rounded or normalised inside backward",
        ),
        Mistake(
            "nondeterministic",
            "backward draws new random numbers",
            "a different gradient at every call",
            "the mask was drawn again instead of cached",
        ),
        Mistake(
            "wrong-shape",
            "the gradient does not have the shape of its argument",
            "an update raises, or changes a parameter's shape",
            "the gradient of a value always has the value's shape",
        ),
        Mistake(
            "dtype-or-overflow",
            "NaN, infinity or lost precision where the true gradient is finite",
            "NaN after some hundred steps",
            "an intermediate overflowed, cancelled or was rounded to whole numbers",
        ),
        Mistake(
            "swapped-gradients",
            "each is right, and returned for the other argument",
            "two parameters are updated with each other's gradient",
            "a tuple or a dictionary was built in another order",
        ),
        Mistake(
            "zero-gradient",
            "zero where it should not be: a path is cut",
            "a parameter never moves",
            "a mask that is never true, or a result that was computed and not returned",
        ),
    )
}

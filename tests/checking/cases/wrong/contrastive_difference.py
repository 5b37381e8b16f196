import numpy as np

SOURCE = (
    "https://github.com/BVLC/caffe/pull/7100: the contrastive loss's GPU backward leaves out the factor"
    " diff[i] for dissimilar pairs"
)
EXPECT = "missing-local-derivative"
ACCEPT = ["wrong-local-derivative"]
WHERE = ["a", "b"]
MARGIN = 6.0


def inputs(rng):
    return {"a": rng.normal(size=(6, 3)), "b": rng.normal(size=(6, 3)), "same": np.array([1, 0, 0, 1, 0, 1])}


def forward(a, b, same):
    sq = ((a - b) ** 2).sum(axis=1)
    return np.where(same == 1, sq, np.maximum(MARGIN - sq, 0)).sum() / (2 * len(a))


def backward(grad_output, a, b, same):
    alpha = grad_output / len(a)
    da = np.zeros_like(a)
    for i in range(len(a)):
        diff = a[i] - b[i]
        if same[i]:
            da[i] = alpha * diff
        elif MARGIN - diff @ diff > 0:
            da[i] = -alpha
    return {"a": da, "b": -da}


FIX = "da[i] = -alpha * diff"


def backward_fixed(grad_output, a, b, same):
    alpha = grad_output / len(a)
    da = np.zeros_like(a)
    for i in range(len(a)):
        diff = a[i] - b[i]
        if same[i]:
            da[i] = alpha * diff
        elif MARGIN - diff @ diff > 0:
            da[i] = -alpha * diff
    return {"a": da, "b": -da}

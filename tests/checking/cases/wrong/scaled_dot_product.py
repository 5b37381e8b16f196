import numpy as np

SOURCE = (
    "scaled dot-product attention whose backward forgets 1/sqrt(d) (a vendor's page prints it that way:"
    " docs.nvidia.com cuDNN frontend, sdpa_bwd)"
)
EXPECT = "missing-local-derivative"
ACCEPT = ["constant-factor"]
WHERE = ["q", "k"]


def inputs(rng):
    return {"q": rng.normal(size=(2, 3, 5)), "k": rng.normal(size=(2, 4, 5)), "v": rng.normal(size=(2, 4, 3))}


def weights(q, k):
    s = np.einsum("bqd,bkd->bqk", q, k) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def forward(q, k, v):
    return weights(q, k) @ v


def backward(grad_output, q, k, v):
    a = weights(q, k)
    da = np.einsum("bqe,bke->bqk", grad_output, v)
    ds = a * (da - np.sum(a * da, axis=-1, keepdims=True))
    return {
        "q": np.einsum("bqk,bkd->bqd", ds, k),
        "k": np.einsum("bqk,bqd->bkd", ds, q),
        "v": np.einsum("bqk,bqe->bke", a, grad_output),
    }


FIX = "ds /= np.sqrt(q.shape[-1])"


def backward_fixed(grad_output, q, k, v):
    a = weights(q, k)
    da = np.einsum("bqe,bke->bqk", grad_output, v)
    ds = a * (da - np.sum(a * da, axis=-1, keepdims=True)) / np.sqrt(q.shape[-1])
    return {
        "q": np.einsum("bqk,bkd->bqd", ds, k),
        "k": np.einsum("bqk,bqd->bkd", ds, q),
        "v": np.einsum("bqk,bqe->bke", a, grad_output),
    }

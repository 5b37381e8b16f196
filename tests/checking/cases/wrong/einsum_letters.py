import numpy as np

SOURCE = "einsum with the output letters typed in the other order, unnoticed for square matrices"
EXPECT = "transposed"
ACCEPT = []
WHERE = "M"


def inputs(rng):
    return {"u": rng.normal(size=(5, 3)), "M": rng.normal(size=(3, 3)), "w": rng.normal(size=(5, 3))}


def forward(u, M, w):
    return np.einsum("ni,ij,nj->n", u, M, w)


def backward(grad_output, u, M, w):
    return {
        "u": np.einsum("n,ij,nj->ni", grad_output, M, w),
        "M": np.einsum("n,ni,nj->ji", grad_output, u, w),
        "w": np.einsum("n,ni,ij->nj", grad_output, u, M),
    }


FIX = '"n,ni,nj->ij"'


def backward_fixed(grad_output, u, M, w):
    return {
        "u": np.einsum("n,ij,nj->ni", grad_output, M, w),
        "M": np.einsum("n,ni,nj->ij", grad_output, u, w),
        "w": np.einsum("n,ni,ij->nj", grad_output, u, M),
    }

import numpy as np

SOURCE = "energy 0.5 x.T K x per row: K * x broadcasts without complaint where K @ x was meant"
EXPECT = "elementwise-instead-of-matmul"
ACCEPT = []
WHERE = "x"


def inputs(rng):
    root = rng.normal(size=(3, 3))
    return {"x": rng.normal(size=(3, 3)), "K": root + root.T}


def forward(x, K):
    return 0.5 * np.einsum("ni,ij,nj->n", x, K, x)


def backward(grad_output, x, K):
    dx = grad_output[:, None] * (x * K)
    dK = 0.5 * np.einsum("n,ni,nj->ij", grad_output, x, x)
    return {"x": dx, "K": dK}


FIX = "dx = grad_output[:, None] * (x @ K)"


def backward_fixed(grad_output, x, K):
    dx = grad_output[:, None] * (0.5 * (x @ K + x @ K.T))
    dK = 0.5 * np.einsum("n,ni,nj->ij", grad_output, x, x)
    return {"x": dx, "K": dK}

import numpy as np

TRICK = "a loop that stops when it has converged: the derivative is that of the fixed point"


def inputs(rng):
    return {"a": rng.uniform(0.5, 20, size=5)}


def forward(a):
    y = 1.0 + a / 2
    for _ in range(60):
        nxt = 0.5 * (y + a / y)
        if np.allclose(nxt, y, rtol=1e-15, atol=0):
            break
        y = nxt
    return y


def backward(grad_output, a):
    return {"a": grad_output / (2 * forward(a))}

import numpy as np

SOURCE = (
    "truncated backpropagation taken too far: the carried gradient is reset at every step, nothing "
    "reaches the first state"
)
EXPECT = "zero-gradient"
ACCEPT = ["missing-term"]
WHERE = ["h0", "U"]


def inputs(rng):
    return {"h0": rng.normal(size=3), "U": 0.6 * rng.normal(size=(3, 3)), "x": rng.normal(size=(4, 3))}


def unroll(h0, U, x):
    hs = [h0]
    for xt in x:
        hs.append(np.tanh(U @ hs[-1] + xt))
    return hs


def forward(h0, U, x):
    return unroll(h0, U, x)[-1]


def backward(grad_output, h0, U, x):
    hs = unroll(h0, U, x)
    dU, dh = np.zeros_like(U), grad_output
    for t in reversed(range(len(x))):
        da = dh * (1 - hs[t + 1] ** 2)
        dU += np.outer(da, hs[t])
        dh = np.zeros_like(h0)
    return {"h0": dh, "U": dU}


FIX = "dh = U.T @ da"


def backward_fixed(grad_output, h0, U, x):
    hs = unroll(h0, U, x)
    dU, dh = np.zeros_like(U), grad_output
    for t in reversed(range(len(x))):
        da = dh * (1 - hs[t + 1] ** 2)
        dU += np.outer(da, hs[t])
        dh = U.T @ da
    return {"h0": dh, "U": dU}

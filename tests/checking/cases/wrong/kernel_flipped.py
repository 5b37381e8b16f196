import numpy as np

SOURCE = (
    "a window slid over a sequence, whose kernel is flipped on the way back as in a convolution by formula"
)
EXPECT = "wrong-position"
ACCEPT = ["wrong-axis"]
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=7), "w": rng.normal(size=3)}


def forward(x, w):
    return np.array([x[t : t + len(w)] @ w for t in range(len(x) - len(w) + 1)])


def backward(grad_output, x, w):
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for t in range(len(grad_output)):
        dx[t : t + len(w)] += grad_output[t] * w[::-1]
        dw += grad_output[t] * x[t : t + len(w)]
    return {"x": dx, "w": dw}


FIX = "dx[t : t + len(w)] += grad_output[t] * w"


def backward_fixed(grad_output, x, w):
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for t in range(len(grad_output)):
        dx[t : t + len(w)] += grad_output[t] * w
        dw += grad_output[t] * x[t : t + len(w)]
    return {"x": dx, "w": dw}

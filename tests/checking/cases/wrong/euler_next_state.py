import numpy as np

SOURCE = "adjoint of explicit Euler steps: the slope is taken at the state after the step"
EXPECT = "wrong-evaluation-point"
ACCEPT = []
WHERE = ["y0", "k"]
DT, STEPS = 0.2, 4


def inputs(rng):
    return {"y0": rng.uniform(0.2, 1.0, size=3), "k": rng.uniform(0.5, 2.0, size=3)}


def trajectory(y0, k):
    ys = [y0]
    for _ in range(STEPS):
        y = ys[-1]
        ys.append(y + DT * k * y * (1 - y))
    return ys


def forward(y0, k):
    return trajectory(y0, k)[-1]


def backward(grad_output, y0, k):
    ys = trajectory(y0, k)
    lam, dk = grad_output, np.zeros_like(k)
    for n in range(STEPS, 0, -1):
        y = ys[n]
        dk = dk + lam * DT * y * (1 - y)
        lam = lam * (1 + DT * k * (1 - 2 * y))
    return {"y0": lam, "k": dk}


FIX = "y = ys[n - 1]"


def backward_fixed(grad_output, y0, k):
    ys = trajectory(y0, k)
    lam, dk = grad_output, np.zeros_like(k)
    for n in range(STEPS, 0, -1):
        y = ys[n - 1]
        dk = dk + lam * DT * y * (1 - y)
        lam = lam * (1 + DT * k * (1 - 2 * y))
    return {"y0": lam, "k": dk}

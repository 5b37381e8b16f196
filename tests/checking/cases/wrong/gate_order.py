import numpy as np

SOURCE = "LSTM gates packed as i, f, o, g in one layer and unpacked as f, i, o, g in another"
EXPECT = "swapped-gradients"
ACCEPT = []
WHERE = ["Wi", "Wf"]


def sig(z):
    return 1 / (1 + np.exp(-z))


def inputs(rng):
    out = {k: rng.normal(size=(3, 2)) for k in ("Wi", "Wf", "Wg")}
    return {"x": rng.normal(size=(4, 3)), "c": rng.normal(size=(4, 2)), **out}


def forward(x, c, Wi, Wf, Wg):
    return sig(x @ Wf) * c + sig(x @ Wi) * np.tanh(x @ Wg)


def packed(g, x, c, Wi, Wf, Wg):
    i, f, n = sig(x @ Wi), sig(x @ Wf), np.tanh(x @ Wg)
    deltas = (g * n * i * (1 - i), g * c * f * (1 - f), g * i * (1 - n**2))
    dx = deltas[0] @ Wi.T + deltas[1] @ Wf.T + deltas[2] @ Wg.T
    return dx, g * f, [x.T @ d for d in deltas]


def backward(grad_output, x, c, Wi, Wf, Wg):
    dx, dc, (dWf, dWi, dWg) = packed(grad_output, x, c, Wi, Wf, Wg)
    return {"x": dx, "c": dc, "Wi": dWi, "Wf": dWf, "Wg": dWg}


FIX = "dx, dc, (dWi, dWf, dWg) = packed(...)"


def backward_fixed(grad_output, x, c, Wi, Wf, Wg):
    dx, dc, (dWi, dWf, dWg) = packed(grad_output, x, c, Wi, Wf, Wg)
    return {"x": dx, "c": dc, "Wi": dWi, "Wf": dWf, "Wg": dWg}

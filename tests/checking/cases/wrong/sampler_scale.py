import numpy as np

SOURCE = (
    "https://github.com/qassemoquab/stnbhwd/issues/29 asks why it is there: the (n-1)/2 that turns grid"
    " coordinates in [-1, 1] into pixels, here forgotten"
)
EXPECT = "missing-local-derivative"
ACCEPT = ["constant-factor"]
WHERE = "grid"


def inputs(rng):
    return {"signal": rng.normal(size=6), "grid": rng.uniform(-0.95, 0.95, size=5)}


def locate(signal, grid):
    pos = (grid + 1) * (len(signal) - 1) / 2
    left = np.clip(np.floor(pos).astype(int), 0, len(signal) - 2)
    return left, pos - left


def forward(signal, grid):
    i, frac = locate(signal, grid)
    return (1 - frac) * signal[i] + frac * signal[i + 1]


def backward(grad_output, signal, grid):
    i, frac = locate(signal, grid)
    dsignal = np.zeros_like(signal)
    np.add.at(dsignal, i, (1 - frac) * grad_output)
    np.add.at(dsignal, i + 1, frac * grad_output)
    return {"signal": dsignal, "grid": grad_output * (signal[i + 1] - signal[i])}


FIX = "dgrid *= (len(signal) - 1) / 2"


def backward_fixed(grad_output, signal, grid):
    i, frac = locate(signal, grid)
    dsignal = np.zeros_like(signal)
    np.add.at(dsignal, i, (1 - frac) * grad_output)
    np.add.at(dsignal, i + 1, frac * grad_output)
    slope = (signal[i + 1] - signal[i]) * (len(signal) - 1) / 2
    return {"signal": dsignal, "grid": grad_output * slope}

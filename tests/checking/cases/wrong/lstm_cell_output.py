import numpy as np

SOURCE = "LSTM cell by hand: the step through tanh(c) uses 1 - c**2 instead of 1 - tanh(c)**2"
EXPECT = "wrong-evaluation-point"
ACCEPT = ["wrong-local-derivative"]
WHERE = ["zi", "zf", "zg", "c_prev"]


def sig(z):
    return 1 / (1 + np.exp(-z))


def inputs(rng):
    return {k: rng.normal(size=(3, 2)) for k in ("zi", "zf", "zo", "zg", "c_prev")}


def cell(zi, zf, zo, zg, c_prev):
    i, f, o, g = sig(zi), sig(zf), sig(zo), np.tanh(zg)
    c = f * c_prev + i * g
    return i, f, o, g, c


def forward(zi, zf, zo, zg, c_prev):
    _, _, o, _, c = cell(zi, zf, zo, zg, c_prev)
    return o * np.tanh(c)


def backward(grad_output, zi, zf, zo, zg, c_prev):
    i, f, o, g, c = cell(zi, zf, zo, zg, c_prev)
    do = grad_output * np.tanh(c)
    dc = grad_output * o * (1 - c**2)
    return {
        "zi": dc * g * i * (1 - i),
        "zf": dc * c_prev * f * (1 - f),
        "zo": do * o * (1 - o),
        "zg": dc * i * (1 - g**2),
        "c_prev": dc * f,
    }


FIX = "dc = grad_output * o * (1 - np.tanh(c)**2)"


def backward_fixed(grad_output, zi, zf, zo, zg, c_prev):
    i, f, o, g, c = cell(zi, zf, zo, zg, c_prev)
    do = grad_output * np.tanh(c)
    dc = grad_output * o * (1 - np.tanh(c) ** 2)
    return {
        "zi": dc * g * i * (1 - i),
        "zf": dc * c_prev * f * (1 - f),
        "zo": do * o * (1 - o),
        "zg": dc * i * (1 - g**2),
        "c_prev": dc * f,
    }

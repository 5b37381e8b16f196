import numpy as np

SOURCE = (
    "https://github.com/digantamisra98/Mish/issues/11: the derivative printed in the paper's first "
    "version has 2e^(2x) where 2e^x belongs"
)
EXPECT = "wrong-local-derivative"
ACCEPT = []
WHERE = "x"


def inputs(rng):
    return {"x": rng.normal(size=(3, 4))}


def forward(x):
    return x * np.tanh(np.log1p(np.exp(x)))


def backward(grad_output, x):
    e = np.exp(x)
    omega = 4 * (x + 1) + 4 * e**2 + e**3 + e * (4 * x + 6)
    delta = 2 * e**2 + e**2 + 2
    return {"x": grad_output * e * omega / delta**2}


FIX = "delta = 2 * e + e**2 + 2"


def backward_fixed(grad_output, x):
    e = np.exp(x)
    omega = 4 * (x + 1) + 4 * e**2 + e**3 + e * (4 * x + 6)
    delta = 2 * e + e**2 + 2
    return {"x": grad_output * e * omega / delta**2}

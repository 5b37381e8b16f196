import numpy as np

SOURCE = "tanh GELU: the derivative of 0.044715 x^3 is taken as 0.044715 x^2, the 3 is lost"
EXPECT = "wrong-local-derivative"
ACCEPT = ["constant-factor"]
WHERE = "x"
C = np.sqrt(2 / np.pi)


def inputs(rng):
    return {"x": 1.5 * rng.normal(size=(3, 4))}


def forward(x):
    return 0.5 * x * (1 + np.tanh(C * (x + 0.044715 * x**3)))


def backward(grad_output, x):
    t = np.tanh(C * (x + 0.044715 * x**3))
    dinner = C * (1 + 0.044715 * x**2)
    return {"x": grad_output * (0.5 * (1 + t) + 0.5 * x * (1 - t**2) * dinner)}


FIX = "dinner = C * (1 + 3 * 0.044715 * x**2)"


def backward_fixed(grad_output, x):
    t = np.tanh(C * (x + 0.044715 * x**3))
    dinner = C * (1 + 3 * 0.044715 * x**2)
    return {"x": grad_output * (0.5 * (1 + t) + 0.5 * x * (1 - t**2) * dinner)}

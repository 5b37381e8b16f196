import numpy as np

SOURCE = (
    "z = mu + exp(logvar / 2) * eps: the gradient of logvar is g * eps, the derivative of the standard "
    "deviation is left out"
)
EXPECT = "missing-local-derivative"
ACCEPT = []
WHERE = "logvar"


def inputs(rng):
    return {"mu": rng.normal(size=(2, 3)), "logvar": rng.normal(size=(2, 3)), "eps": rng.normal(size=(2, 3))}


def forward(mu, logvar, eps):
    return mu + np.exp(logvar / 2) * eps


def backward(grad_output, mu, logvar, eps):
    return {"mu": 1.0 * grad_output, "logvar": grad_output * eps}


FIX = "dlogvar = grad_output * eps * 0.5 * np.exp(logvar / 2)"


def backward_fixed(grad_output, mu, logvar, eps):
    return {"mu": 1.0 * grad_output, "logvar": grad_output * eps * 0.5 * np.exp(logvar / 2)}

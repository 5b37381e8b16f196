import numpy as np

TRICK = "SELU: a kink at zero (slopes 1.05 and 1.76), with zeros among the inputs"
A, S = 1.6732632423543772, 1.0507009873554805


def inputs(rng):
    x = rng.normal(size=(3, 4))
    x[:, 1] = 0.0
    return {"x": x}


def forward(x):
    return S * np.where(x > 0, x, A * np.expm1(np.minimum(x, 0)))


def backward(grad_output, x):
    return {"x": grad_output * S * np.where(x > 0, 1.0, A * np.exp(np.minimum(x, 0)))}

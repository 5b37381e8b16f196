import numpy as np

SOURCE = (
    "KL of a Gaussian code to the unit normal, differentiated by hand: the log-variance is pushed the "
    "wrong way (kin: https://github.com/Kaixhin/Autoencoders/issues/9)"
)
EXPECT = "wrong-sign"
ACCEPT = []
WHERE = "logvar"


def inputs(rng):
    return {"mu": rng.normal(size=(4, 3)), "logvar": rng.normal(size=(4, 3))}


def forward(mu, logvar):
    return -0.5 * np.sum(1 + logvar - mu**2 - np.exp(logvar), axis=1)


def backward(grad_output, mu, logvar):
    g = grad_output[:, None]
    return {"mu": g * mu, "logvar": 0.5 * g * (1 - np.exp(logvar))}


FIX = "dlogvar = 0.5 * g * (np.exp(logvar) - 1)"


def backward_fixed(grad_output, mu, logvar):
    g = grad_output[:, None]
    return {"mu": g * mu, "logvar": 0.5 * g * (np.exp(logvar) - 1)}

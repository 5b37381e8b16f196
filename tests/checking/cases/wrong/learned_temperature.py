import numpy as np

SOURCE = "a learned temperature of shape (1,) divides all logits; its gradient keeps one entry per logit"
EXPECT = "broadcast-not-summed"
ACCEPT = ["wrong-shape"]
WHERE = "tau"


def inputs(rng):
    return {"logits": rng.normal(size=(3, 4)), "tau": rng.uniform(0.5, 2, size=1)}


def forward(logits, tau):
    return logits / tau


def backward(grad_output, logits, tau):
    dlogits = grad_output / tau
    dtau = -dlogits * logits / tau
    return {"logits": dlogits, "tau": dtau}


FIX = "dtau = np.array([-(dlogits * logits / tau).sum()])"


def backward_fixed(grad_output, logits, tau):
    dlogits = grad_output / tau
    return {"logits": dlogits, "tau": np.array([-(dlogits * logits / tau).sum()])}

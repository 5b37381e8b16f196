import numpy as np

SOURCE = "mean over time steps in the forward, copied unscaled to every step in the backward"
EXPECT = "batch-mean-vs-sum"
ACCEPT = ["constant-factor", "missing-local-derivative"]
WHERE = ["seq", "W"]


def inputs(rng):
    return {"seq": rng.normal(size=(5, 3, 2)), "W": rng.normal(size=(2, 3))}


def forward(seq, W):
    return np.mean(np.tanh(seq @ W), axis=0)


def backward(grad_output, seq, W):
    h = np.tanh(seq @ W)
    dh = np.broadcast_to(grad_output, h.shape)
    dz = dh * (1 - h**2)
    return {"seq": dz @ W.T, "W": np.einsum("tbi,tbo->io", seq, dz)}


FIX = "dh = grad_output / len(seq), broadcast"


def backward_fixed(grad_output, seq, W):
    h = np.tanh(seq @ W)
    dh = np.broadcast_to(grad_output / len(seq), h.shape)
    dz = dh * (1 - h**2)
    return {"seq": dz @ W.T, "W": np.einsum("tbi,tbo->io", seq, dz)}

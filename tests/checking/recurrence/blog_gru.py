"""A GRU as a blog has it: weights in a dictionary, one dictionary of values for each time."""

import numpy as np


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def init_params(n_in, n_h, rng):
    p = {}
    for gate in "zrh":
        p["W" + gate] = rng.normal(0, 0.5, (n_in, n_h))
        p["U" + gate] = rng.normal(0, 0.5, (n_h, n_h))
        p["b" + gate] = rng.normal(0, 0.1, n_h)
    return p


def gru_forward(X, p):
    batch, steps, _ = X.shape
    h = np.zeros((batch, p["Uz"].shape[0]))
    history = []
    for t in range(steps):
        x = X[:, t]
        z = sigmoid(x @ p["Wz"] + h @ p["Uz"] + p["bz"])
        r = sigmoid(x @ p["Wr"] + h @ p["Ur"] + p["br"])
        h_tilde = np.tanh(x @ p["Wh"] + (r * h) @ p["Uh"] + p["bh"])
        h_new = (1 - z) * h + z * h_tilde
        history.append({"x": x, "h_prev": h, "z": z, "r": r, "h_tilde": h_tilde})
        h = h_new
    return h, history


def gru_backward(dh, history, p):
    grads = {k: np.zeros_like(v) for k, v in p.items()}
    for step in reversed(history):
        x, h_prev, z, r, h_tilde = step["x"], step["h_prev"], step["z"], step["r"], step["h_tilde"]
        dh_tilde = dh * z
        dz = dh * (h_tilde - h_prev)
        dh_prev = dh * (1 - z)
        da_h = dh_tilde * (1 - h_tilde**2)
        drh = da_h @ p["Uh"].T
        dr = drh * h_prev
        dh_prev += drh * r
        da_z = dz * z * (1 - z)
        da_r = dr * r * (1 - r)
        dh_prev += da_z @ p["Uz"].T
        dh_prev += da_r @ p["Ur"].T
        grads["Wh"] += x.T @ da_h
        grads["Uh"] += (r * h_prev).T @ da_h
        grads["bh"] += da_h.sum(axis=0)
        grads["Wz"] += x.T @ da_z
        grads["Uz"] += h_prev.T @ da_z
        grads["bz"] += da_z.sum(axis=0)
        grads["Wr"] += x.T @ da_r
        grads["Ur"] += h_prev.T @ da_r
        grads["br"] += da_r.sum(axis=0)
        dh = dh_prev
    return grads


if __name__ == "__main__":
    rng = np.random.default_rng(4)
    X = rng.normal(size=(3, 5, 2))
    p = init_params(2, 4, rng)
    h, history = gru_forward(X, p)
    grads = gru_backward(rng.normal(size=h.shape), history, p)

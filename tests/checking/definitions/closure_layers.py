import numpy as np


def dense(n_in, n_out, seed=0):
    r = np.random.RandomState(seed)
    W = r.randn(n_in, n_out) / np.sqrt(n_in)
    b = r.randn(1, n_out)
    params, grads, saved = {"W": W, "b": b}, {}, {}

    def forward(X):
        saved["X"] = X
        saved["A"] = np.tanh(X.dot(params["W"]) + params["b"])
        return saved["A"]

    def backward(dA):
        dZ = dA * (1 - saved["A"] ** 2)
        grads["W"] = saved["X"].T.dot(dZ)
        grads["b"] = dZ.sum(axis=0, keepdims=True)
        return dZ.dot(params["W"].T)

    return {"forward": forward, "backward": backward, "params": params, "grads": grads}


def squashing(lr=0.1):
    out = None
    scale = np.array([0.7])

    def forward(x):
        nonlocal out
        out = 1 / (1 + np.exp(-scale * x))
        return out

    def backward(grad):
        nonlocal scale
        dz = grad * out * (1 - out)
        dx = dz * scale
        scale -= lr * np.sum(dz * np.log(out / (1 - out)) / scale)
        return dx

    return forward, backward
#WRONG: grads["b"] = dZ.sum(axis=0, keepdims=True) => grads["b"] = dZ.mean(axis=0, keepdims=True)
#WRONG: dx = dz * scale => dx = dz

import numpy as np


def init(sizes, seed=1):
    rng = np.random.default_rng(seed)
    return [{"W": rng.normal(size=(m, n)) / np.sqrt(m), "b": np.zeros(n)} for m, n in zip(sizes, sizes[1:])]


def value_and_grad(layers, x, target):
    activations = [x]
    for layer in layers[:-1]:
        activations.append(np.maximum(activations[-1] @ layer["W"] + layer["b"], 0.0))
    prediction = activations[-1] @ layers[-1]["W"] + layers[-1]["b"]
    error = prediction - target
    loss = np.mean(error**2)
    g = 2 * error / error.size
    grads = []
    for layer, a in zip(layers[::-1], activations[::-1]):
        grads.insert(0, {"W": a.T @ g, "b": g.sum(axis=0)})
        g = (g @ layer["W"].T) * (a > 0)
    return loss, grads

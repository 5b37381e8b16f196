import numpy as np


def make_net(n, h, seed=0):
    rng = np.random.default_rng(seed)
    return {"A": rng.normal(size=(h, n)), "a": np.zeros(h), "B": rng.normal(size=h), "b": np.zeros(1)}


def predict(net, x):
    return net["B"] @ np.tanh(net["A"] @ x + net["a"]) + net["b"][0]


def loss(net, x, t):
    return 0.5 * (predict(net, x) - t) ** 2


def sgd_step(net, x, t, eta=0.1):
    h = np.tanh(net["A"] @ x + net["a"])
    e = net["B"] @ h + net["b"][0] - t
    back = e * net["B"]
    net["B"] -= eta * e * h
    net["b"] -= eta * e
    net["A"] -= eta * np.outer(back, x)
    net["a"] -= eta * back

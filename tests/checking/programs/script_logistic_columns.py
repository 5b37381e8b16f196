import numpy as np

rng = np.random.default_rng(9)
m = 30
X = rng.normal(size=(4, m))
Y = (X.sum(axis=0, keepdims=True) > 0).astype(float)
W = rng.normal(size=(1, 4)) * 0.1
b = np.zeros((1, 1))
for _ in range(100):
    Z = W @ X + b
    A = 1 / (1 + np.exp(-Z))
    J = -(Y * np.log(A) + (1 - Y) * np.log(1 - A)).sum() / m
    dZ = A - Y
    dW = dZ @ X.T / m
    db = dZ.sum() / m
    W -= 0.5 * dW
    b -= 0.5 * db

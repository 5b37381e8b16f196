import numpy as np

SOURCE = (
    "https://github.com/HIPS/autograd/pull/412: the derivative of the normal log density with respect "
    "to the covariance had the wrong sign"
)
EXPECT = "wrong-sign"
ACCEPT = []
WHERE = "cov"


def inputs(rng):
    root = rng.normal(size=(3, 3))
    return {"x": rng.normal(size=(6, 3)), "mean": rng.normal(size=3), "cov": root @ root.T + np.eye(3)}


def forward(x, mean, cov):
    d = x - mean
    _, logdet = np.linalg.slogdet(cov)
    quad = np.sum(d * np.linalg.solve(cov, d.T).T, axis=1)
    return -0.5 * (quad + logdet + 3 * np.log(2 * np.pi))


def backward(grad_output, x, mean, cov):
    d = x - mean
    inv = np.linalg.inv(cov)
    sol = 0.5 * (d @ inv.T + d @ inv)
    dx = -grad_output[:, None] * sol
    dcov = 0.5 * (grad_output.sum() * inv.T - inv.T @ (d.T @ (grad_output[:, None] * d)) @ inv.T)
    return {"x": dx, "mean": -dx.sum(axis=0), "cov": dcov}


FIX = "dcov = -0.5 * (sum(g) * inv.T - inv.T @ (d.T @ (g * d)) @ inv.T)"


def backward_fixed(grad_output, x, mean, cov):
    d = x - mean
    inv = np.linalg.inv(cov)
    sol = 0.5 * (d @ inv.T + d @ inv)
    dx = -grad_output[:, None] * sol
    dcov = -0.5 * (grad_output.sum() * inv.T - inv.T @ (d.T @ (grad_output[:, None] * d)) @ inv.T)
    return {"x": dx, "mean": -dx.sum(axis=0), "cov": dcov}

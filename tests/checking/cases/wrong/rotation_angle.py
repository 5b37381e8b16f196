import numpy as np

SOURCE = "plane rotation by hand: one of the two entries of dR/dtheta has the wrong sign"
EXPECT = "wrong-sign"
ACCEPT = ["wrong-local-derivative"]
WHERE = "theta"


def inputs(rng):
    return {"theta": rng.uniform(-3, 3, size=()), "p": rng.normal(size=(2, 6))}


def forward(theta, p):
    c, s = np.cos(theta), np.sin(theta)
    return np.stack([c * p[0] - s * p[1], s * p[0] + c * p[1]])


def backward(grad_output, theta, p):
    c, s = np.cos(theta), np.sin(theta)
    gx, gy = grad_output
    dtheta = np.sum(gx * (-s * p[0] - c * p[1]) + gy * (c * p[0] + s * p[1]))
    return {"theta": dtheta, "p": np.stack([c * gx + s * gy, -s * gx + c * gy])}


FIX = "gy * (c * p[0] - s * p[1])"


def backward_fixed(grad_output, theta, p):
    c, s = np.cos(theta), np.sin(theta)
    gx, gy = grad_output
    dtheta = np.sum(gx * (-s * p[0] - c * p[1]) + gy * (c * p[0] - s * p[1]))
    return {"theta": dtheta, "p": np.stack([c * gx + s * gy, -s * gx + c * gy])}

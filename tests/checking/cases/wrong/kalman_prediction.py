import numpy as np

SOURCE = "covariance prediction P' = F P F.T + Q: the adjoint pushes g forward instead of pulling it back"
EXPECT = "transposed"
ACCEPT = []
WHERE = "P"


def inputs(rng):
    root = rng.normal(size=(3, 3))
    return {"F": rng.normal(size=(3, 3)), "P": root @ root.T, "Q": np.eye(3) * rng.uniform(0.5, 1, size=3)}


def forward(F, P, Q):
    return F @ P @ F.T + Q


def backward(grad_output, F, P, Q):
    dF = grad_output @ F @ P.T + grad_output.T @ F @ P
    dP = F @ grad_output @ F.T
    return {"F": dF, "P": dP, "Q": grad_output.copy()}


FIX = "dP = F.T @ grad_output @ F"


def backward_fixed(grad_output, F, P, Q):
    dF = grad_output @ F @ P.T + grad_output.T @ F @ P
    dP = F.T @ grad_output @ F
    return {"F": dF, "P": dP, "Q": grad_output.copy()}

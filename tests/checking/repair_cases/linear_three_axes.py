"""A linear layer on sequences: the weights' gradient takes the first sequence only."""


def inputs(rng):
    return {"x": rng.normal(size=(2, 4, 3)), "W": rng.normal(size=(3, 5)), "b": rng.normal(size=5)}


def forward(x, W, b):
    return x @ W + b


def backward(grad_output, x, W, b):
    dW = (x.transpose(0, 2, 1) @ grad_output).mean(axis=0)
    return {"x": grad_output @ W.T, "W": dW, "b": grad_output.sum(axis=1)}


def backward_fixed(grad_output, x, W, b):
    dW = (x.transpose(0, 2, 1) @ grad_output).sum(axis=0)
    return {"x": grad_output @ W.T, "W": dW, "b": grad_output.sum(axis=(0, 1))}

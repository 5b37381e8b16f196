import numpy as np

SOURCE = "one class token repeated for every example (np.tile): the gradient is taken from the last copy only"
EXPECT = "broadcast-not-summed"
ACCEPT = ["missing-term", "overwritten-not-accumulated"]
WHERE = "token"


def inputs(rng):
    return {"x": rng.normal(size=(3, 2, 4)), "token": rng.normal(size=(1, 1, 4))}


def forward(x, token):
    return np.concatenate([np.tile(token, (len(x), 1, 1)), x], axis=1)


def backward(grad_output, x, token):
    dtoken = np.zeros_like(token)
    for example in grad_output:
        dtoken[0, 0] = example[0]
    return {"x": grad_output[:, 1:], "token": dtoken}


FIX = "dtoken[0, 0] += example[0]"


def backward_fixed(grad_output, x, token):
    dtoken = np.zeros_like(token)
    for example in grad_output:
        dtoken[0, 0] += example[0]
    return {"x": grad_output[:, 1:], "token": dtoken}

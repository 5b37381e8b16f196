import numpy as np

SOURCE = (
    "https://github.com/ghosert/cmd-editor/issues/2058 (again in "
    "https://github.com/jmschrei/tangermeme/pull/95): overlapping max-pool windows assign where they "
    "should add"
)
EXPECT = "overwritten-not-accumulated"
ACCEPT = ["missing-term"]
WHERE = "x"
SIZE, STRIDE = 3, 1


def inputs(rng):
    return {"x": rng.normal(size=(2, 7)) + np.array([0, 0, 3, 0, 0, 0, 0])}


def starts(x):
    return range(0, x.shape[1] - SIZE + 1, STRIDE)


def forward(x):
    return np.stack([x[:, s : s + SIZE].max(axis=1) for s in starts(x)], axis=1)


def backward(grad_output, x):
    d = np.zeros_like(x)
    for c in range(x.shape[0]):
        for k, s in enumerate(starts(x)):
            j = s + np.argmax(x[c, s : s + SIZE])
            d[c, j] = grad_output[c, k]
    return {"x": d}


FIX = "d[c, j] += grad_output[c, k]"


def backward_fixed(grad_output, x):
    d = np.zeros_like(x)
    for c in range(x.shape[0]):
        for k, s in enumerate(starts(x)):
            j = s + np.argmax(x[c, s : s + SIZE])
            d[c, j] += grad_output[c, k]
    return {"x": d}

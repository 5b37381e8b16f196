import numpy as np

SOURCE = "linear interpolation: the slope of the interval to the left of the one that the point lies in"
EXPECT = "wrong-evaluation-point"
ACCEPT = ["wrong-local-derivative", "wrong-axis"]
WHERE = "q"


def inputs(rng):
    return {"q": np.sort(rng.uniform(0.1, 2.9, size=5)), "f": rng.normal(size=5)}


def forward(q, f):
    k = q.astype(int)
    return f[k] + (q - k) * (f[k + 1] - f[k])


def backward(grad_output, q, f):
    k = q.astype(int)
    df = np.zeros_like(f)
    np.add.at(df, k, grad_output * (1 - (q - k)))
    np.add.at(df, k + 1, grad_output * (q - k))
    return {"q": grad_output * (f[k] - f[k - 1]), "f": df}


FIX = "f[k + 1] - f[k]"


def backward_fixed(grad_output, q, f):
    k = q.astype(int)
    df = np.zeros_like(f)
    np.add.at(df, k, grad_output * (1 - (q - k)))
    np.add.at(df, k + 1, grad_output * (q - k))
    return {"q": grad_output * (f[k + 1] - f[k]), "f": df}

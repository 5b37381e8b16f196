import numpy as np

SOURCE = (
    "https://github.com/scikit-learn/scikit-learn/issues/8349: the loss averages over samples and "
    "outputs, the gradient over samples only"
)
EXPECT = "constant-factor"
ACCEPT = ["batch-mean-vs-sum"]
WHERE = ["W", "b"]


def inputs(rng):
    return {
        "X": rng.normal(size=(7, 4)),
        "W": rng.normal(size=(4, 3)),
        "b": rng.normal(size=3),
        "T": rng.normal(size=(7, 3)),
    }


def forward(X, W, b, T):
    return 0.5 * ((X @ W + b - T) ** 2).mean()


def backward(grad_output, X, W, b, T):
    n_samples = X.shape[0]
    delta = grad_output * (X @ W + b - T)
    return {"W": X.T @ delta / n_samples, "b": np.sum(delta, axis=0) / n_samples}


FIX = "divide by T.size, as the mean in the loss does"


def backward_fixed(grad_output, X, W, b, T):
    delta = grad_output * (X @ W + b - T) / T.size
    return {"W": X.T @ delta, "b": np.sum(delta, axis=0)}

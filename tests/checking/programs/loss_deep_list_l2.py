import numpy as np


def objective(weights, x, labels, decay=0.01):
    """Softmax classifier with tanh layers, no biases. weights: a list of matrices."""
    hs = [x]
    for W in weights[:-1]:
        hs.append(np.tanh(hs[-1] @ W))
    logits = hs[-1] @ weights[-1]
    logits = logits - logits.max(1, keepdims=True)
    logp = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    rows = np.arange(len(x))
    loss = -logp[rows, labels].mean() + decay / 2 * sum((W**2).sum() for W in weights)

    delta = np.exp(logp)
    delta[rows, labels] -= 1
    delta /= len(x)
    grads = []
    for W, h in zip(reversed(weights), reversed(hs)):
        grads.append(h.T @ delta + 2 * decay * W)
        delta = (delta @ W.T) * (1 - h**2)
    return loss, grads[::-1]

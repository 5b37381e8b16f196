import numpy as np

SOURCE = (
    "np.add(dx, part) without out=: the sum is computed and thrown away, for one of the two branches' inputs"
)
EXPECT = "zero-gradient"
ACCEPT = ["missing-term"]
WHERE = "context"


def inputs(rng):
    return {"query": rng.normal(size=(3, 4)), "context": rng.normal(size=(3, 4))}


def forward(query, context):
    return np.sum(query * np.tanh(context), axis=1)


def backward(grad_output, query, context):
    grads = {"query": np.zeros_like(query), "context": np.zeros_like(context)}
    t = np.tanh(context)
    grads["query"] += grad_output[:, None] * t
    np.add(grads["context"], grad_output[:, None] * query * (1 - t**2))
    return grads


FIX = 'np.add(..., out=grads["context"])'


def backward_fixed(grad_output, query, context):
    t = np.tanh(context)
    return {"query": grad_output[:, None] * t, "context": grad_output[:, None] * query * (1 - t**2)}

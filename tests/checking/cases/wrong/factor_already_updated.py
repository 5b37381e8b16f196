import numpy as np

SOURCE = (
    "matrix factorisation by SGD: the user factor is updated in place before the item's gradient reads "
    "it (kin: https://github.com/piskvorky/gensim/issues/287)"
)
EXPECT = "stale-or-mutated-state"
ACCEPT = []
WHERE = "items"
RATE = 0.2


def inputs(rng):
    return {
        "users": rng.normal(size=(3, 2)),
        "items": rng.normal(size=(4, 2)),
        "ratings": rng.normal(size=(3, 4)),
    }


def forward(users, items, ratings):
    return 0.5 * np.sum((users @ items.T - ratings) ** 2)


def backward(grad_output, users, items, ratings):
    error = grad_output * (users @ items.T - ratings)
    dusers = error @ items
    users -= RATE * dusers
    ditems = error.T @ users
    return {"users": dusers, "items": ditems}


FIX = "no update inside the backward pass"


def backward_fixed(grad_output, users, items, ratings):
    error = grad_output * (users @ items.T - ratings)
    return {"users": error @ items, "items": error.T @ users}

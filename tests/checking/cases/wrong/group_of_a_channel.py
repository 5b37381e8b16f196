import numpy as np

SOURCE = (
    "https://github.com/tenstorrent/tt-metal/pull/56202: group norm's gamma gradient looks its group up"
    " as channel % groups instead of channel // (channels per group)"
)
EXPECT = "wrong-evaluation-point"
ACCEPT = ["wrong-axis"]
WHERE = "gamma"
GROUPS, EPS = 2, 1e-5


def inputs(rng):
    shift = np.array([0.0, 0.0, 2.0, 2.0])[None, :, None]
    return {
        "x": rng.normal(size=(2, 4, 3)) + shift,
        "gamma": rng.uniform(0.5, 2, size=4),
        "beta": rng.normal(size=4),
    }


def statistics(x):
    g = x.reshape(len(x), GROUPS, -1)
    return g.mean(axis=2), 1 / np.sqrt(g.var(axis=2) + EPS)


def normalised(x, group):
    mean, rstd = statistics(x)
    return (x - mean[:, group, None]) * rstd[:, group, None]


def forward(x, gamma, beta):
    channel = np.arange(x.shape[1])
    xh = normalised(x, channel // (len(channel) // GROUPS))
    return gamma[:, None] * xh + beta[:, None]


def backward(grad_output, x, gamma, beta):
    channel = np.arange(x.shape[1])
    xh = normalised(x, channel % GROUPS)
    return {"gamma": (grad_output * xh).sum(axis=(0, 2)), "beta": grad_output.sum(axis=(0, 2))}


FIX = "group = channel // (len(channel) // GROUPS)"


def backward_fixed(grad_output, x, gamma, beta):
    channel = np.arange(x.shape[1])
    xh = normalised(x, channel // (len(channel) // GROUPS))
    return {"gamma": (grad_output * xh).sum(axis=(0, 2)), "beta": grad_output.sum(axis=(0, 2))}

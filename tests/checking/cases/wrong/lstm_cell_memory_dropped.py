import numpy as np

SOURCE = "LSTM over time: the hidden state's gradient is carried back, the cell state's is not"
EXPECT = "missing-term"
ACCEPT = ["zero-gradient"]
WHERE = ["W", "xs"]


def sig(z):
    return 1 / (1 + np.exp(-z))


def inputs(rng):
    return {"xs": rng.normal(size=(4, 2)), "W": 0.8 * rng.normal(size=(5, 12))}


def steps(xs, W):
    h, c, tape = np.zeros(3), np.zeros(3), []
    for x in xs:
        z = np.concatenate([x, h])
        i, f, o, g = np.split(z @ W, 4)
        i, f, o, g = sig(i), sig(f), sig(o), np.tanh(g)
        tape.append((z, i, f, o, g, c))
        c = f * c + i * g
        h = o * np.tanh(c)
        tape[-1] += (c,)
    return h, tape


def forward(xs, W):
    return steps(xs, W)[0]


def backward(grad_output, xs, W):
    _, tape = steps(xs, W)
    dW, dxs = np.zeros_like(W), np.zeros_like(xs)
    dh = grad_output
    for t in range(len(xs) - 1, -1, -1):
        z, i, f, o, g, c_prev, c = tape[t]
        tc = np.tanh(c)
        dc = dh * o * (1 - tc**2)
        da = np.concatenate(
            [dc * g * i * (1 - i), dc * c_prev * f * (1 - f), dh * tc * o * (1 - o), dc * i * (1 - g**2)]
        )
        dW += np.outer(z, da)
        dz = W @ da
        dxs[t], dh = dz[:2], dz[2:]
    return {"xs": dxs, "W": dW}


FIX = "carry dc_next = dc * f and add it to dc"


def backward_fixed(grad_output, xs, W):
    _, tape = steps(xs, W)
    dW, dxs = np.zeros_like(W), np.zeros_like(xs)
    dh, dc_next = grad_output, np.zeros(3)
    for t in range(len(xs) - 1, -1, -1):
        z, i, f, o, g, c_prev, c = tape[t]
        tc = np.tanh(c)
        dc = dh * o * (1 - tc**2) + dc_next
        da = np.concatenate(
            [dc * g * i * (1 - i), dc * c_prev * f * (1 - f), dh * tc * o * (1 - o), dc * i * (1 - g**2)]
        )
        dW += np.outer(z, da)
        dz = W @ da
        dxs[t], dh, dc_next = dz[:2], dz[2:], dc * f
    return {"xs": dxs, "W": dW}

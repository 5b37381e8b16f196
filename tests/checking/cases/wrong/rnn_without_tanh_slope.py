import numpy as np

SOURCE = (
    "written after https://gist.github.com/karpathy/d4dee566867f8291f086 (which has it right): the step"
    " back through tanh is forgotten"
)
EXPECT = "missing-local-derivative"
ACCEPT = []
WHERE = ["xs", "Wx", "Wh", "h0"]


def inputs(rng):
    return {
        "xs": rng.normal(size=(4, 3)),
        "Wx": rng.normal(size=(2, 3)),
        "Wh": rng.normal(size=(2, 2)),
        "h0": rng.normal(size=2),
    }


def states(xs, Wx, Wh, h0):
    hs = [h0]
    for x in xs:
        hs.append(np.tanh(Wx @ x + Wh @ hs[-1]))
    return hs


def forward(xs, Wx, Wh, h0):
    return np.stack(states(xs, Wx, Wh, h0)[1:])


def through_time(grad_output, xs, Wx, Wh, h0, slope):
    hs = states(xs, Wx, Wh, h0)
    dxs, dWx, dWh, dh = np.zeros_like(xs), np.zeros_like(Wx), np.zeros_like(Wh), np.zeros_like(h0)
    for t in reversed(range(len(xs))):
        da = (grad_output[t] + dh) * slope(hs[t + 1])
        dWx += np.outer(da, xs[t])
        dWh += np.outer(da, hs[t])
        dxs[t] = Wx.T @ da
        dh = Wh.T @ da
    return {"xs": dxs, "Wx": dWx, "Wh": dWh, "h0": dh}


def backward(grad_output, xs, Wx, Wh, h0):
    return through_time(grad_output, xs, Wx, Wh, h0, lambda h: 1.0)


FIX = "da = (g + dh) * (1 - h**2)"


def backward_fixed(grad_output, xs, Wx, Wh, h0):
    return through_time(grad_output, xs, Wx, Wh, h0, lambda h: 1 - h**2)

"""One, two and three layers of sigmoids on digits in MNIST's format, online and in mini-batches.

The question. Each layer takes the chain from the layer after it, multiplies it by out (1 - out), changes its
weights by the outer product of its input and that, and hands the chain on; the error is ½ Σ (label - out)².
How does this become mini-batches: may inputs and outputs be averaged over the batch, like the error? In which
order does a layer change its weights and hand the chain on? Who stores inputs and outputs? And ReLU?

The answer. An outer product belongs to one example: add up the products. A product of averages has lost which
input met which error; it is close only while all outputs are alike, and little is learned from it. The chain
goes back through the weights that made the outputs, so it is handed on before they change. The network stores
what its backward lines read, nothing else. ReLU puts 1 (on) or 0 (off) where out (1 - out) stood.

It reads the digits that come with handgrad, or the MNIST files in the folder that HANDGRAD_MNIST names.
"""

import os
import struct
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np

from handgrad import SGD, HalfSquaredError, Linear, Network, ReLU, Sigmoid, train
from handgrad.data import digits, mnist
from handgrad.rules import linear, relu, sgd, show_shape, sigmoid

ROWS = 1200  # to learn from: enough to show everything, few enough to wait for
BATCH = 10


def write_idx(path, array):
    """Write bytes as MNIST does: 0, 0, the type 8, the rank, each size in four bytes, then the values."""
    header = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    path.write_bytes(header + array.tobytes())


def read_digits():
    if os.environ.get("HANDGRAD_MNIST"):
        return mnist()
    data = digits()
    images = (data.x.reshape(-1, 8, 8) * 15.9375).astype(np.uint8)  # grey from 0 to 255, as in MNIST
    labels = data.t.astype(np.uint8)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, rows in (("train", slice(ROWS)), ("t10k", slice(ROWS, None))):
            write_idx(folder / f"{part}-images-idx3-ubyte", images[rows])
            write_idx(folder / f"{part}-labels-idx1-ubyte", labels[rows])
        return mnist(folder)


def make_net(pixels, layers, activation=Sigmoid):
    widths = [pixels, *[30] * (layers - 1), 10]
    body = []
    for inputs, outputs in pairwise(widths):
        body += [Linear(inputs, outputs), activation()]
    return Network(*body[:-1], Sigmoid(), loss=HalfSquaredError(), dtype="float64")


def go_forward(net, layer_in):
    """Return every layer's weights, input and output."""
    layers = []
    for k in range(1, len(net.parameters) // 2 + 1):
        weights, biases = net.parameters[f"W{k}"], net.parameters[f"b{k}"]
        out = sigmoid(linear(layer_in, weights, biases))
        layers.append((weights, layer_in, out))
        layer_in = out
    return layers


def go_back(layers, label):
    """Return dE/dw and dE/db of every layer for one example, as the question's layers compute them."""
    chain = layers[-1][2] - label  # dE/ds: not label - out, which would climb
    gradients = {}
    for k, (weights, layer_in, out) in reversed(list(enumerate(layers, 1))):
        chain = chain * out * (1 - out)  # ds/dnet
        gradients |= {f"W{k}": np.outer(layer_in, chain), f"b{k}": chain}  # dnet/dw is in, dnet/db is 1
        chain = weights @ chain  # dnet/ds is w: handed on while w is what it was
    return gradients


def averaged(layers):
    """Return the layers with their inputs and outputs averaged over the batch."""
    return [(weights, layer_in.mean(axis=0), out.mean(axis=0)) for weights, layer_in, out in layers]


def off(wrong, right):
    """Return how far off a gradient is, in the length of the right one."""
    return np.linalg.norm(wrong - right) / np.linalg.norm(right)


def three_layers(data, x, label):
    """Train nets of one, two and three layers; return the one of three sigmoids, trained in mini-batches."""
    print(f"{ROWS:,} digits of {x.shape[1]} pixels to learn from, {data.test_rows:,} to test on")
    print("  right on these        online, 2 epochs   in tens, 12 epochs")
    nets = []
    for layers, activation, rate in ((1, Sigmoid, 0.5), (2, Sigmoid, 0.5), (3, ReLU, 0.1), (3, Sigmoid, 1.0)):
        online, net = (make_net(x.shape[1], layers, activation) for _ in range(2))
        train(online, x, label, epochs=2, batch_size=1, optimiser=SGD(rate), progress=False)
        train(net, x, label, epochs=12, batch_size=BATCH, optimiser=SGD(0.1), progress=False)
        name = f"{layers} of {activation.__name__}"
        print(f"  {name:20}  {score(online, data):<16.1%}   {score(net, data):.1%}")
        nets.append(net)
    return nets[-1]


def mini_batches(data, x, label, trained):
    """Compare sums of examples, and averages, with the program; return the differences and a score."""
    net, rows = make_net(x.shape[1], 3), slice(BATCH)
    layers = go_forward(net, x[rows])
    examples = [go_back([(w, i[n], o[n]) for w, i, o in layers], label[n]) for n in range(BATCH)]
    one, batch = net.gradients(x[:1], label[:1]), net.gradients(x[rows], label[rows])
    differs = [
        max(np.abs(examples[0][name] - one[name]).max() for name in one),
        max(np.abs(sum(example[name] for example in examples) - batch[name]).max() for name in batch),
    ]
    print("\nThe question's layers against the written-out program, largest difference:")
    print(f"  one example {differs[0]:.1e}, a mini-batch as the sum of its examples {differs[1]:.1e}")

    print("Gradients of w1, w2 and w3 from averaged inputs and outputs:")
    for when, some in (("at the start", net), ("in the trained net", trained)):
        right = some.gradients(x[rows], label[rows])
        wrong = go_back(averaged(go_forward(some, x[rows])), label[rows].mean(axis=0))
        shares = [f"{off(wrong[name], right[name] / BATCH):.0%}" for name in ("W1", "W2", "W3")]
        print(f"  {when}, off by {', '.join(shares)}")
    shuffle = np.random.default_rng(0).permutation
    for numbers in np.concatenate([shuffle(ROWS).reshape(-1, BATCH) for _ in range(12)]):
        step = go_back(averaged(go_forward(net, x[numbers])), label[numbers].mean(axis=0))
        for name, gradient in step.items():
            sgd(net.parameters[name], gradient, learning_rate=0.1 * BATCH)  # a mean, so BATCH times the rate
    print(f"  trained with them, {score(net, data):.1%} right; with the sums, {score(trained, data):.1%}")
    return max(differs), score(net, data)


def order(net, x, label):
    """Hand the chain of the last layer on before and after its weights change."""
    weights, layer_in, out = go_forward(net, x[:BATCH])[-1]
    biases = net.parameters["b3"]
    dnet = sigmoid.gradients(out - label[:BATCH], linear(layer_in, weights, biases))["z"]
    before = linear.gradients(dnet, layer_in, weights, biases)
    sgd(weights, before["W"], learning_rate=0.5)
    after = linear.gradients(dnet, layer_in, weights, biases)
    print(f"\nHanded on after w3 has changed, the chain is off by {off(after['x'], before['x']):.0%}")
    phases = [line.phase for line in net.program().lines]
    print("  the program's order:", " → ".join(dict.fromkeys(phases)))
    return phases == sorted(phases, key=list(dict.fromkeys(phases)).index)


def storage(net):
    """Show which values of the forward are kept: those that a backward line reads."""
    program = net.program()
    read = frozenset().union(*(line.reads for line in program.phase("backward")))
    shapes = {line.target: f"{line.target}{show_shape(line.shape)}" for line in program.phase("forward")}
    print("\nFor the way back the network stores", ", ".join(shapes[name] for name in shapes if name in read))
    print("  and not", ", ".join(shapes[name] for name in shapes if name not in read))


def score(net, data):
    """Return the share of the test digits that a net gets right."""
    test = slice(-data.test_rows, None)
    return (net.predict(data.x[test] / 255).argmax(axis=1) == data.t[test]).mean()


def main():
    data = read_digits()
    x, label = data.x[:ROWS] / 255, np.eye(10)[data.t[:ROWS]]
    trained = three_layers(data, x, label)
    right = score(trained, data)
    differs, right_with_averages = mini_batches(data, x, label, trained)
    ordered = order(trained, x, label)
    storage(trained)
    slope = relu.gradients(np.ones(3), np.array([-2.0, 0.0, 3.0]))["z"]
    print(f"\nThe slope of ReLU at -2, 0 and 3: {slope}")
    return 0 if differs < 1e-12 and right_with_averages < right > 0.8 and ordered else 1


if __name__ == "__main__":
    sys.exit(main())

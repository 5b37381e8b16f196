SOURCE = "the loss averages over rows, the gradient over rows and columns"
EXPECT = "constant-factor"
ACCEPT = ["batch-mean-vs-sum"]
WHERE = "Y"


def inputs(rng):
    return {"Y": rng.normal(size=(5, 3)), "T": rng.normal(size=(5, 3))}


def forward(Y, T):
    return ((Y - T) ** 2).sum() / len(Y)


def backward(grad_output, Y, T):
    return {"Y": grad_output * 2 * (Y - T) / Y.size}


FIX = "divide by len(Y)"


def backward_fixed(grad_output, Y, T):
    return {"Y": grad_output * 2 * (Y - T) / len(Y)}

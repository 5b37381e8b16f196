"""A quotient: the denominator's gradient without its sign and square."""


def inputs(rng):
    return {"a": rng.normal(size=(3, 4)), "b": rng.uniform(0.5, 2, size=(3, 4))}


def forward(a, b):
    return a / b


def backward(grad_output, a, b):
    return {"a": grad_output / b, "b": grad_output * a / b}


def backward_fixed(grad_output, a, b):
    return {"a": grad_output / b, "b": -grad_output * a / b**2}

import numpy as np

SOURCE = (
    "https://github.com/tensorflow/tfjs/issues/346 (kin: tensorflow#2295, stanli#150): the exponent's "
    "gradient takes log(0) where the base is 0"
)
EXPECT = "dtype-or-overflow"
ACCEPT = []
WHERE = "exponent"


def inputs(rng):
    base = rng.uniform(0.5, 2, size=6)
    base[[1, 4]] = 0.0
    return {"base": base, "exponent": rng.uniform(2.2, 3.5, size=6)}


def forward(base, exponent):
    return base**exponent


def backward(grad_output, base, exponent):
    with np.errstate(all="ignore"):
        dbase = grad_output * exponent * base ** (exponent - 1)
        dexponent = grad_output * base**exponent * np.log(base)
    return {"base": dbase, "exponent": dexponent}


FIX = "np.log(np.where(base > 0, base, 1.0))"


def backward_fixed(grad_output, base, exponent):
    safe = np.where(base > 0, base, 1.0)
    dbase = grad_output * exponent * base ** (exponent - 1)
    return {"base": dbase, "exponent": grad_output * base**exponent * np.log(safe)}

import numpy as np

SOURCE = (
    "https://github.com/NervanaSystems/neon/issues/111: bprop of a 3-D convolution writes plane m where"
    " it should write plane d"
)
EXPECT = "wrong-evaluation-point"
ACCEPT = ["overwritten-not-accumulated", "wrong-axis", "missing-term"]
WHERE = "volume"


def inputs(rng):
    return {"volume": rng.normal(size=(3, 4)), "filters": rng.normal(size=(3, 2, 4))}


def forward(volume, filters):
    return np.einsum("di,dmi->dm", volume, filters)


def backward(grad_output, volume, filters):
    dvolume, dfilters = np.zeros_like(volume), np.zeros_like(filters)
    for d in range(filters.shape[0]):
        for m in range(filters.shape[1]):
            dvolume[m] += grad_output[d, m] * filters[d, m]
            dfilters[d, m] = grad_output[d, m] * volume[d]
    return {"volume": dvolume, "filters": dfilters}


FIX = "dvolume[d] += ..."


def backward_fixed(grad_output, volume, filters):
    dvolume, dfilters = np.zeros_like(volume), np.zeros_like(filters)
    for d in range(filters.shape[0]):
        for m in range(filters.shape[1]):
            dvolume[d] += grad_output[d, m] * filters[d, m]
            dfilters[d, m] = grad_output[d, m] * volume[d]
    return {"volume": dvolume, "filters": dfilters}

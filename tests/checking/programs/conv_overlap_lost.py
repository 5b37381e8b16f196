import numpy as np


def conv_forward(images, kernels, bias):
    """images (N, H, W), kernels (F, k, k), valid, stride 1"""
    N, H, W = images.shape
    F, k, _ = kernels.shape
    out = np.zeros((N, F, H - k + 1, W - k + 1))
    for r in range(H - k + 1):
        for c in range(W - k + 1):
            patch = images[:, r : r + k, c : c + k]
            out[:, :, r, c] = np.tensordot(patch, kernels, axes=([1, 2], [1, 2])) + bias
    return out, (images, kernels)


def conv_backward(dout, cache):
    images, kernels = cache
    k = kernels.shape[1]
    dimages = np.zeros_like(images)
    dkernels = np.zeros_like(kernels)
    for r in range(dout.shape[2]):
        for c in range(dout.shape[3]):
            patch = images[:, r : r + k, c : c + k]
            dkernels += np.tensordot(dout[:, :, r, c].T, patch, axes=1)
            dimages[:, r : r + k, c : c + k] = np.tensordot(dout[:, :, r, c], kernels, axes=1)
    dbias = dout.sum(axis=(0, 2, 3))
    return dimages, dkernels, dbias

import numpy as np


def max_pool_forward(x, size=2, stride=2):
    N, C, H, W = x.shape
    Ho, Wo = (H - size) // stride + 1, (W - size) // stride + 1
    out = np.empty((N, C, Ho, Wo))
    for i in range(Ho):
        for j in range(Wo):
            window = x[:, :, i * stride : i * stride + size, j * stride : j * stride + size]
            out[:, :, i, j] = window.max(axis=(2, 3))
    return out, (x, out, size, stride)


def max_pool_backward(dout, cache):
    x, out, size, stride = cache
    dx = np.zeros_like(x)
    for i in range(out.shape[2]):
        for j in range(out.shape[3]):
            rows = slice(i * stride, i * stride + size)
            cols = slice(j * stride, j * stride + size)
            mask = x[:, :, rows, cols] == out[:, :, i, j][:, :, None, None]
            dx[:, :, rows, cols] += mask * dout[:, :, i, j][:, :, None, None]
    return dx

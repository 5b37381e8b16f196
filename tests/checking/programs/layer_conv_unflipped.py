import numpy as np


def correlate_valid(image, kernel):
    k = kernel.shape[0]
    rows, cols = image.shape[0] - k + 1, image.shape[1] - k + 1
    out = np.zeros((rows, cols))
    for i in range(rows):
        for j in range(cols):
            out[i, j] = np.sum(image[i : i + k, j : j + k] * kernel)
    return out


def correlate_full(image, kernel):
    p = kernel.shape[0] - 1
    return correlate_valid(np.pad(image, p), kernel)


class Convolution:
    """One image in, depth maps out; kernels (depth, k, k)."""

    def __init__(self, depth, k):
        self.kernels = np.random.RandomState(4).randn(depth, k, k)

    def forward(self, image):
        self.image = image
        return np.stack([correlate_valid(image, kernel) for kernel in self.kernels])

    def backward(self, output_gradient):
        self.kernels_gradient = np.stack([correlate_valid(self.image, g) for g in output_gradient])
        input_gradient = np.zeros_like(self.image)
        for g, kernel in zip(output_gradient, self.kernels):
            input_gradient += correlate_full(g, kernel)
        return input_gradient

import numpy as np

SOURCE = (
    "https://github.com/sebgao/cTensor/issues/3: the convolution kernel's gradient is multiplied by 1/(B*H*W)"
)
EXPECT = "batch-mean-vs-sum"
ACCEPT = ["constant-factor", "extra-term"]
WHERE = "kernel"


def inputs(rng):
    return {"images": rng.normal(size=(2, 4, 5)), "kernel": rng.normal(size=(2, 2))}


def patches(images):
    return np.lib.stride_tricks.sliding_window_view(images, (2, 2), axis=(1, 2))


def forward(images, kernel):
    return np.einsum("bhwij,ij->bhw", patches(images), kernel)


def backward(grad_output, images, kernel):
    B, H, W = grad_output.shape
    dkernel = np.einsum("bhwij,bhw->ij", patches(images), grad_output) * (1.0 / (B * H * W))
    dimages = np.zeros_like(images)
    for i in range(2):
        for j in range(2):
            dimages[:, i : i + H, j : j + W] += kernel[i, j] * grad_output
    return {"images": dimages, "kernel": dkernel}


FIX = "dkernel = einsum(...), no average"


def backward_fixed(grad_output, images, kernel):
    _, H, W = grad_output.shape
    dkernel = np.einsum("bhwij,bhw->ij", patches(images), grad_output)
    dimages = np.zeros_like(images)
    for i in range(2):
        for j in range(2):
            dimages[:, i : i + H, j : j + W] += kernel[i, j] * grad_output
    return {"images": dimages, "kernel": dkernel}

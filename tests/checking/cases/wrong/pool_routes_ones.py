import numpy as np

SOURCE = "max pooling whose backward marks the winners with 1 and forgets the gradient that arrives"
EXPECT = "ignores-upstream"
ACCEPT = []
WHERE = "image"


def inputs(rng):
    return {"image": rng.normal(size=(2, 1, 4, 4))}


def forward(image):
    n, c, h, w = image.shape
    return image.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def backward(grad_output, image):
    spread = np.repeat(np.repeat(forward(image), 2, axis=2), 2, axis=3)
    return {"image": (image == spread).astype(float)}


FIX = "mask * np.repeat(np.repeat(grad_output, 2, axis=2), 2, axis=3)"


def backward_fixed(grad_output, image):
    spread = np.repeat(np.repeat(forward(image), 2, axis=2), 2, axis=3)
    return {"image": (image == spread) * np.repeat(np.repeat(grad_output, 2, axis=2), 2, axis=3)}

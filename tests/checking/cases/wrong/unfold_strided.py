import numpy as np

SOURCE = "col2im by fancy assignment: the columns' gradients are written, not added, where patches overlap"
EXPECT = "overwritten-not-accumulated"
ACCEPT = ["missing-term"]
WHERE = "img"


def inputs(rng):
    return {"img": rng.normal(size=(4, 4)), "filt": rng.normal(size=(9, 2))}


def patch_index():
    i, j = np.meshgrid(np.arange(2), np.arange(2), indexing="ij")
    a, b = np.meshgrid(np.arange(3), np.arange(3), indexing="ij")
    return i.reshape(-1, 1) + a.reshape(1, -1), j.reshape(-1, 1) + b.reshape(1, -1)


def forward(img, filt):
    return img[patch_index()] @ filt


def backward(grad_output, img, filt):
    rows, cols = patch_index()
    dcol = grad_output @ filt.T
    dimg = np.zeros_like(img)
    dimg[rows, cols] = dcol
    return {"img": dimg, "filt": img[rows, cols].T @ grad_output}


FIX = "np.add.at(dimg, (rows, cols), dcol)"


def backward_fixed(grad_output, img, filt):
    rows, cols = patch_index()
    dimg = np.zeros_like(img)
    np.add.at(dimg, (rows, cols), grad_output @ filt.T)
    return {"img": dimg, "filt": img[rows, cols].T @ grad_output}

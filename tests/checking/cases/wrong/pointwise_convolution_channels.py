import numpy as np

SOURCE = (
    "https://github.com/nntrainer/nntrainer/issues/705: 'weight grad is transposed in wrong order' for "
    "convolutions with several channels"
)
EXPECT = "transposed"
ACCEPT = []
WHERE = "kernel"


def inputs(rng):
    return {"image": rng.normal(size=(2, 3, 2, 4)), "kernel": rng.normal(size=(3, 3))}


def forward(image, kernel):
    return np.einsum("oc,nchw->nohw", kernel, image)


def backward(grad_output, image, kernel):
    dimage = np.einsum("oc,nohw->nchw", kernel, grad_output)
    dkernel = np.einsum("nohw,nchw->co", grad_output, image)
    return {"image": dimage, "kernel": dkernel}


FIX = 'np.einsum("nohw,nchw->oc", ...)'


def backward_fixed(grad_output, image, kernel):
    dimage = np.einsum("oc,nohw->nchw", kernel, grad_output)
    dkernel = np.einsum("nohw,nchw->oc", grad_output, image)
    return {"image": dimage, "kernel": dkernel}

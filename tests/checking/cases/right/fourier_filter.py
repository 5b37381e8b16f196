import numpy as np

TRICK = "a real signal through complex numbers: rfft, a filter, irfft"


def inputs(rng):
    return {"x": rng.normal(size=9), "h": rng.normal(size=9)}


def forward(x, h):
    return np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(h), n=len(x))


def backward(grad_output, x, h):
    G = np.fft.rfft(grad_output)
    return {
        "x": np.fft.irfft(G * np.conj(np.fft.rfft(h)), n=len(x)),
        "h": np.fft.irfft(G * np.conj(np.fft.rfft(x)), n=len(h)),
    }

import numpy as np

SOURCE = "convolution by FFT: the adjoint needs the conjugate of the filter's spectrum"
EXPECT = "transposed"
ACCEPT = ["missing-local-derivative"]
WHERE = "signal"


def inputs(rng):
    return {"signal": rng.normal(size=7), "filt": rng.normal(size=7)}


def forward(signal, filt):
    return np.fft.irfft(np.fft.rfft(signal) * np.fft.rfft(filt), n=7)


def backward(grad_output, signal, filt):
    g = np.fft.rfft(grad_output)
    return {
        "signal": np.fft.irfft(g * np.fft.rfft(filt), n=7),
        "filt": np.fft.irfft(g * np.conj(np.fft.rfft(signal)), n=7),
    }


FIX = "g * np.conj(np.fft.rfft(filt))"


def backward_fixed(grad_output, signal, filt):
    g = np.fft.rfft(grad_output)
    return {
        "signal": np.fft.irfft(g * np.conj(np.fft.rfft(filt)), n=7),
        "filt": np.fft.irfft(g * np.conj(np.fft.rfft(signal)), n=7),
    }

import numpy as np

C = np.sqrt(2 / np.pi)


class GELU:
    def forward(self, x):
        self.x = x
        self.t = np.tanh(C * (x + 0.044715 * x**3))
        return 0.5 * x * (1 + self.t)

    def backward(self, dy):
        dt = 1 - self.t**2
        du = C * (1 + 3 * 0.044715 * self.x**2)
        return dy * (0.5 * (1 + self.t) + 0.5 * self.x * dt * du)

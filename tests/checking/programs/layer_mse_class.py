import numpy as np


class MSE:
    def __call__(self, pred, target):
        self.diff = pred - target
        return np.mean(self.diff**2)

    def backward(self):
        return 2 * self.diff / self.diff.shape[0]

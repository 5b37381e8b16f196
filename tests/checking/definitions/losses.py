import numpy as np

class Loss:
    def __call__(self, y_pred, y_true):
        return self.forward(y_pred, y_true)

class MSE(Loss):
    def forward(self, y_pred, y_true):
        self.y_pred, self.y_true = y_pred, y_true
        return np.mean((y_pred - y_true) ** 2)
    def backward(self):
        return 2 * (self.y_pred - self.y_true) / self.y_true.size

class Huber(Loss):
    def __init__(self, delta=1.0):
        self.delta = delta
    def forward(self, y_pred, y_true):
        self.r = y_pred - y_true
        a = np.abs(self.r)
        return np.mean(np.where(a <= self.delta, 0.5 * self.r ** 2, self.delta * (a - 0.5 * self.delta)))
    def backward(self):
        a = np.abs(self.r)
        return np.where(a <= self.delta, self.r, self.delta * np.sign(self.r)) / self.r.size

class FocalLoss(Loss):
    def __init__(self, gamma=2.0, alpha=0.25):
        self.gamma, self.alpha = gamma, alpha
    def forward(self, logits, y_true):
        self.p = 1 / (1 + np.exp(-logits))
        self.y = y_true
        pt = np.where(self.y == 1, self.p, 1 - self.p)
        at = np.where(self.y == 1, self.alpha, 1 - self.alpha)
        return np.mean(-at * (1 - pt) ** self.gamma * np.log(pt))
    def backward(self):
        pt = np.where(self.y == 1, self.p, 1 - self.p)
        at = np.where(self.y == 1, self.alpha, 1 - self.alpha)
        dpt = at * (self.gamma * (1 - pt) ** (self.gamma - 1) * np.log(pt) - (1 - pt) ** self.gamma / pt)
        dz = dpt * np.where(self.y == 1, 1, -1) * self.p * (1 - self.p)
        return dz / self.y.size

class Hinge(Loss):
    def forward(self, scores, y):
        self.scores, self.y = scores, y
        n = scores.shape[0]
        correct = scores[np.arange(n), y][:, None]
        self.margins = np.maximum(0, scores - correct + 1)
        self.margins[np.arange(n), y] = 0
        return self.margins.sum() / n
    def backward(self):
        n = self.scores.shape[0]
        d = (self.margins > 0).astype(float)
        d[np.arange(n), self.y] = -d.sum(axis=1)
        return d / n

class TripletLoss(Loss):
    def __init__(self, margin=0.2):
        self.margin = margin
    def __call__(self, anchor, positive, negative):
        self.a, self.p, self.n = anchor, positive, negative
        self.dp = np.sum((anchor - positive) ** 2, axis=1)
        self.dn = np.sum((anchor - negative) ** 2, axis=1)
        self.l = np.maximum(0, self.dp - self.dn + self.margin)
        return self.l.mean()
    def backward(self):
        on = (self.l > 0)[:, None] / len(self.l)
        da = 2 * on * (self.n - self.p)
        dp = -2 * on * (self.a - self.p)
        dn = 2 * on * (self.a - self.n)
        return da, dp, dn

class KLDivergence(Loss):
    def forward(self, q_logits, p):
        z = q_logits - q_logits.max(axis=1, keepdims=True)
        self.logq = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
        self.p = p
        return np.sum(p * (np.log(p) - self.logq)) / len(p)
    def backward(self):
        return (np.exp(self.logq) * self.p.sum(axis=1, keepdims=True) - self.p) / len(self.p)
#WRONG: -d.sum(axis=1) => -1
#WRONG: dp = -2 * on * (self.a - self.p) => dp = 2 * on * (self.a - self.p)
#WRONG: * np.where(self.y == 1, 1, -1) * self.p => * self.p

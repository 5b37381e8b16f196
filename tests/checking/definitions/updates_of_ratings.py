import numpy as np

rng = np.random.default_rng(3)
P = rng.normal(scale=0.5, size=(6, 3))
Q = rng.normal(scale=0.5, size=(5, 3))
ratings = [(0, 1, 4.0), (1, 2, 3.0), (2, 0, 5.0), (3, 4, 1.0), (5, 3, 2.0)]


def sgd_step(P, Q, i, j, r, lr=0.01, reg=0.05):
    e = r - P[i] @ Q[j]
    p = P[i].copy()
    P[i] += lr * (e * Q[j] - reg * P[i])
    Q[j] += lr * (e * p - reg * Q[j])
    return e


for epoch in range(3):
    for i, j, r in ratings:
        sgd_step(P, Q, i, j, r)


class Biased:
    def __init__(self, users=4, items=5, factors=3, lr=0.01, reg=0.1):
        self.lr, self.reg, self.mu = lr, reg, 3.0
        self.bu, self.bi = rng.normal(size=users), rng.normal(size=items)
        self.P, self.Q = rng.normal(size=(users, factors)), rng.normal(size=(items, factors))

    def predict(self, u, i):
        return self.mu + self.bu[u] + self.bi[i] + self.P[u].dot(self.Q[i])

    def update(self, u, i, r):
        e = r - self.predict(u, i)
        self.bu[u] += self.lr * (e - self.reg * self.bu[u])
        self.bi[i] += self.lr * (e - self.reg * self.bi[i])
        pu = self.P[u].copy()
        self.P[u] += self.lr * (e * self.Q[i] - self.reg * self.P[u])
        self.Q[i] += self.lr * (e * pu - self.reg * self.Q[i])


model = Biased()
for u, i, r in [(0, 1, 4.0), (1, 2, 5.0), (3, 4, 2.0)]:
    model.update(u, i, r)
#WRONG: Q[j] += lr * (e * p - reg * Q[j]) => Q[j] += lr * (e * P[i] - reg * Q[j])
#WRONG: (e * Q[j] - reg * P[i]) => (e * Q[j] + reg * P[i])
#WRONG: (e * pu - self.reg * self.Q[i]) => (e * pu - self.reg * self.P[u])

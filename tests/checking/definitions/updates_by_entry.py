import numpy as np


def factorise(R, P, Q, K, steps=5000, alpha=0.002, beta=0.02):
    Q = Q.T
    for step in range(steps):
        for i in range(len(R)):
            for j in range(len(R[i])):
                if R[i][j] > 0:
                    eij = R[i][j] - np.dot(P[i, :], Q[:, j])
                    for k in range(K):
                        p = P[i][k]
                        P[i][k] = P[i][k] + alpha * (2 * eij * Q[k][j] - beta * P[i][k])
                        Q[k][j] = Q[k][j] + alpha * (2 * eij * p - beta * Q[k][j])
    return P, Q.T


R = np.array([[5, 3, 0, 1], [4, 0, 0, 1], [1, 1, 0, 5]], dtype=float)
factorise(R, np.random.rand(3, 2), np.random.rand(4, 2), 2, steps=2)
#WRONG: (2 * eij * p - beta * Q[k][j]) => (2 * eij * P[i][k] - beta * Q[k][j])

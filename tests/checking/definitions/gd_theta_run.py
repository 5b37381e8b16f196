import numpy as np

def hypothesis(X, theta):
    return 1.0 / (1.0 + np.exp(-X @ theta))

def cost(X, y, theta):
    h = hypothesis(X, theta)
    return -np.mean(y * np.log(h) + (1 - y) * np.log(1 - h))

def gradient_descent(X, y, theta, lr=0.1, n_iters=100):
    m = X.shape[0]
    costs = []
    for _ in range(n_iters):
        h = hypothesis(X, theta)
        grad = X.T @ (h - y) / m
        theta = theta - lr * grad
        costs.append(cost(X, y, theta))
    return theta, costs

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    X = np.c_[np.ones(50), rng.normal(size=(50, 2))]
    y = (X[:, 1] + X[:, 2] > 0).astype(float)
    theta = np.zeros(3)
    theta, costs = gradient_descent(X, y, theta)
    print(costs[-1])

#WRONG: X.T @ (h - y) / m => X.T @ ((h - y) * h * (1 - h)) / m

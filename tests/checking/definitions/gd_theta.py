import numpy as np

def compute_cost(X, y, theta):
    m = len(y)
    return 1 / (2 * m) * np.sum((X.dot(theta) - y) ** 2)

def gradient_descent(X, y, theta, alpha, iterations):
    m = len(y)
    history = []
    for i in range(iterations):
        h = X.dot(theta)
        theta = theta - alpha * (1 / m) * X.T.dot(h - y)
        history.append(compute_cost(X, y, theta))
    return theta, history

#WRONG: (1 / m) * X.T => X.T
#WRONG: (1 / m) * X.T.dot(h - y) => (1/m) * X.T.dot(y - h)

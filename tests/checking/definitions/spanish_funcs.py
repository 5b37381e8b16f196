import numpy as np

def sigmoide(x):
    return 1 / (1 + np.exp(-x))

def adelante(X, pesos, sesgos):
    activaciones = [X]
    for W, b in zip(pesos, sesgos):
        activaciones.append(sigmoide(activaciones[-1] @ W + b))
    return activaciones

def costo(y_pred, y):
    return np.mean((y_pred - y) ** 2)

def atras(activaciones, pesos, y):
    m = y.size
    delta = 2 * (activaciones[-1] - y) / m * activaciones[-1] * (1 - activaciones[-1])
    grad_pesos, grad_sesgos = [], []
    for i in reversed(range(len(pesos))):
        grad_pesos.insert(0, activaciones[i].T @ delta)
        grad_sesgos.insert(0, delta.sum(axis=0))
        if i > 0:
            delta = delta @ pesos[i].T * activaciones[i] * (1 - activaciones[i])
    return grad_pesos, grad_sesgos

#WRONG: delta @ pesos[i].T * activaciones[i] * (1 - activaciones[i]) => delta @ pesos[i].T

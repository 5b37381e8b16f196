import numpy as np

np.random.seed(0)
N_IN, N_HID, N_OUT = 4, 6, 3
W1 = np.random.randn(N_IN, N_HID) * 0.5
b1 = np.zeros(N_HID)
W2 = np.random.randn(N_HID, N_OUT) * 0.5
b2 = np.zeros(N_OUT)
LR = 0.1

def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

def train_step(X, Y):
    global W1, b1, W2, b2
    h = np.maximum(0, X @ W1 + b1)
    p = softmax(h @ W2 + b2)
    loss = -np.mean(np.sum(Y * np.log(p + 1e-8), axis=1))
    d2 = (p - Y) / len(X)
    d1 = (d2 @ W2.T) * (h > 0)
    W2 -= LR * h.T @ d2
    b2 -= LR * d2.sum(axis=0)
    W1 -= LR * X.T @ d1
    b1 -= LR * d1.sum(axis=0)
    return loss

if __name__ == "__main__":
    X = np.random.randn(50, N_IN)
    Y = np.eye(N_OUT)[np.random.randint(0, N_OUT, 50)]
    for i in range(100):
        l = train_step(X, Y)
        if i % 10 == 0:
            print(i, l)
#WRONG: d1 = (d2 @ W2.T) * (h > 0) => d1 = (d2 @ W2.T) * h

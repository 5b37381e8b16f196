import numpy as np

N, D, K = 20, 2, 3  # points per class, dimensions, classes
rng = np.random.RandomState(5)
X = np.zeros((N * K, D))
y = np.zeros(N * K, dtype="uint8")
for j in range(K):
    r = np.linspace(0.1, 1, N)
    t = np.linspace(j * 4, (j + 1) * 4, N) + rng.randn(N) * 0.2
    X[j * N : (j + 1) * N] = np.c_[r * np.sin(t), r * np.cos(t)]
    y[j * N : (j + 1) * N] = j

h = 12
W = 0.5 * rng.randn(D, h)
b = np.zeros((1, h))
W2 = 0.5 * rng.randn(h, K)
b2 = np.zeros((1, K))
step_size, reg = 0.5, 1e-2
num_examples = X.shape[0]
for i in range(50):
    hidden_layer = np.maximum(0, X @ W + b)
    scores = hidden_layer @ W2 + b2
    exp_scores = np.exp(scores)
    probs = exp_scores / exp_scores.sum(axis=1, keepdims=True)
    correct_logprobs = -np.log(probs[range(num_examples), y])
    data_loss = correct_logprobs.sum() / num_examples
    reg_loss = 0.5 * reg * np.sum(W * W) + 0.5 * reg * np.sum(W2 * W2)
    loss = data_loss + reg_loss

    dscores = probs
    dscores[range(num_examples), y] -= 1
    dW2 = hidden_layer.T @ dscores
    db2 = np.sum(dscores, axis=0, keepdims=True)
    dhidden = dscores @ W2.T
    dhidden[hidden_layer <= 0] = 0
    dW = X.T @ dhidden
    db = np.sum(dhidden, axis=0, keepdims=True)
    dW2 += reg * W2
    dW += reg * W

    W += -step_size * dW
    b += -step_size * db
    W2 += -step_size * dW2
    b2 += -step_size * db2

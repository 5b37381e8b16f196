import numpy as np

rng = np.random.default_rng(42)
x = rng.uniform(-1, 1, 50)
y = 3 * x - 0.5 + rng.normal(0, 0.1, 50)

w, b = 0.0, 0.0
learning_rate = 0.1
for epoch in range(200):
    prediction = w * x + b
    loss = np.mean((prediction - y) ** 2)
    dw = 2 * np.mean((prediction - y) * x)
    db = np.mean(prediction - y)
    w -= learning_rate * dw
    b -= learning_rate * db
print(w, b)

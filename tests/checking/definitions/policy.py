import numpy as np

def softmax(x):
    e = np.exp(x - np.max(x))
    return e / e.sum()

class Policy:
    def __init__(self, n_states, n_actions, hidden=8):
        self.W1 = np.random.randn(hidden, n_states) / np.sqrt(n_states)
        self.W2 = np.random.randn(n_actions, hidden) / np.sqrt(hidden)

    def forward(self, state):
        self.state = state
        self.h = np.maximum(0, self.W1 @ state)
        self.p = softmax(self.W2 @ self.h)
        return self.p

    def log_prob_grad(self, state, action, advantage):
        p = self.forward(state)
        loss = -np.log(p[action]) * advantage
        dlogits = p.copy()
        dlogits[action] -= 1
        dlogits *= advantage
        dW2 = np.outer(dlogits, self.h)
        dh = self.W2.T @ dlogits
        dh[self.h <= 0] = 0
        dW1 = np.outer(dh, self.state)
        return loss, {'W1': dW1, 'W2': dW2}
#WRONG: dlogits *= advantage => dlogits /= advantage

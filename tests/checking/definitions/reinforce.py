import numpy as np

def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

class PolicyNet:
    def __init__(self, n_obs, n_hidden, n_actions):
        self.W1 = np.random.randn(n_obs, n_hidden) / np.sqrt(n_obs)
        self.W2 = np.random.randn(n_hidden, n_actions) / np.sqrt(n_hidden)

    def policy_forward(self, obs):
        h = np.maximum(0, obs @ self.W1)
        return softmax(h @ self.W2), h

    def reinforce_loss(self, obs, actions, returns):
        probs, _ = self.policy_forward(obs)
        logp = np.log(probs[np.arange(len(actions)), actions])
        return -np.mean(logp * returns)

    def policy_backward(self, obs, actions, returns):
        probs, h = self.policy_forward(obs)
        n = len(actions)
        dlogits = probs.copy()
        dlogits[np.arange(n), actions] -= 1
        dlogits *= returns[:, None] / n
        dW2 = h.T @ dlogits
        dh = dlogits @ self.W2.T
        dh[h <= 0] = 0
        dW1 = obs.T @ dh
        return dW1, dW2

#WRONG: dh[h <= 0] = 0 => dh[h < 0] = 0
#WRONG: returns[:, None] / n => returns[:, None]

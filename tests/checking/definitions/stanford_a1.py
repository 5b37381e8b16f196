import numpy as np

class TwoLayerNet(object):
    def __init__(self, input_size, hidden_size, output_size, std=1e-4):
        self.params = {}
        self.params['W1'] = std * np.random.randn(input_size, hidden_size)
        self.params['b1'] = np.zeros(hidden_size)
        self.params['W2'] = std * np.random.randn(hidden_size, output_size)
        self.params['b2'] = np.zeros(output_size)

    def loss(self, X, y=None, reg=0.0):
        W1, b1 = self.params['W1'], self.params['b1']
        W2, b2 = self.params['W2'], self.params['b2']
        N, D = X.shape
        z1 = X.dot(W1) + b1
        h1 = np.maximum(0, z1)
        scores = h1.dot(W2) + b2
        if y is None:
            return scores
        scores = scores - np.max(scores, axis=1, keepdims=True)
        exp_scores = np.exp(scores)
        probs = exp_scores / np.sum(exp_scores, axis=1, keepdims=True)
        loss = np.sum(-np.log(probs[range(N), y])) / N
        loss += reg * (np.sum(W1 * W1) + np.sum(W2 * W2))
        grads = {}
        dscores = probs
        dscores[range(N), y] -= 1
        dscores /= N
        grads['W2'] = h1.T.dot(dscores) + 2 * reg * W2
        grads['b2'] = np.sum(dscores, axis=0)
        dh1 = dscores.dot(W2.T)
        dz1 = dh1 * (z1 > 0)
        grads['W1'] = X.T.dot(dz1) + 2 * reg * W1
        grads['b1'] = np.sum(dz1, axis=0)
        return loss, grads

    def train(self, X, y, X_val, y_val, learning_rate=1e-3, learning_rate_decay=0.95, reg=5e-6, num_iters=100, batch_size=200, verbose=False):
        num_train = X.shape[0]
        iterations_per_epoch = max(num_train / batch_size, 1)
        loss_history = []
        for it in range(num_iters):
            idx = np.random.choice(num_train, batch_size, replace=True)
            X_batch = X[idx]
            y_batch = y[idx]
            loss, grads = self.loss(X_batch, y=y_batch, reg=reg)
            loss_history.append(loss)
            for p in self.params:
                self.params[p] -= learning_rate * grads[p]
            if verbose and it % 100 == 0:
                print('iteration %d / %d: loss %f' % (it, num_iters, loss))
        return {'loss_history': loss_history}

    def predict(self, X):
        return np.argmax(self.loss(X), axis=1)
#WRONG: grads['W1'] = X.T.dot(dz1) + 2 * reg * W1 => grads['W1'] = X.T.dot(dz1) + reg * W1
#WRONG: dz1 = dh1 * (z1 > 0) => dz1 = dh1

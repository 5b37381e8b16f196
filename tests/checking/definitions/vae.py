import numpy as np

class VAE:
    def __init__(self, input_dim, hidden_dim, latent_dim, seed=0):
        rng = np.random.RandomState(seed)
        self.rng = rng
        s = 0.1
        self.W1 = rng.randn(input_dim, hidden_dim) * s
        self.b1 = np.zeros(hidden_dim)
        self.Wmu = rng.randn(hidden_dim, latent_dim) * s
        self.bmu = np.zeros(latent_dim)
        self.Wlv = rng.randn(hidden_dim, latent_dim) * s
        self.blv = np.zeros(latent_dim)
        self.W3 = rng.randn(latent_dim, hidden_dim) * s
        self.b3 = np.zeros(hidden_dim)
        self.W4 = rng.randn(hidden_dim, input_dim) * s
        self.b4 = np.zeros(input_dim)

    def encode(self, x):
        self.h = np.tanh(x @ self.W1 + self.b1)
        return self.h @ self.Wmu + self.bmu, self.h @ self.Wlv + self.blv

    def decode(self, z):
        self.h3 = np.tanh(z @ self.W3 + self.b3)
        return 1 / (1 + np.exp(-(self.h3 @ self.W4 + self.b4)))

    def forward(self, x):
        self.x = x
        self.mu, self.logvar = self.encode(x)
        self.eps = self.rng.randn(*self.mu.shape)
        self.z = self.mu + np.exp(0.5 * self.logvar) * self.eps
        self.xhat = self.decode(self.z)
        return self.xhat

    def loss(self, x):
        xhat = self.forward(x)
        bce = -np.sum(x * np.log(xhat + 1e-9) + (1 - x) * np.log(1 - xhat + 1e-9))
        kl = -0.5 * np.sum(1 + self.logvar - self.mu ** 2 - np.exp(self.logvar))
        return (bce + kl) / x.shape[0]

    def backward(self):
        n = self.x.shape[0]
        dlogits = (self.xhat - self.x) / n
        g = {}
        g['W4'] = self.h3.T @ dlogits
        g['b4'] = dlogits.sum(0)
        dh3 = dlogits @ self.W4.T * (1 - self.h3 ** 2)
        g['W3'] = self.z.T @ dh3
        g['b3'] = dh3.sum(0)
        dz = dh3 @ self.W3.T
        dmu = dz + self.mu / n
        dlv = dz * self.eps * 0.5 * np.exp(0.5 * self.logvar) + 0.5 * (np.exp(self.logvar) - 1) / n
        g['Wmu'] = self.h.T @ dmu
        g['bmu'] = dmu.sum(0)
        g['Wlv'] = self.h.T @ dlv
        g['blv'] = dlv.sum(0)
        dh = (dmu @ self.Wmu.T + dlv @ self.Wlv.T) * (1 - self.h ** 2)
        g['W1'] = self.x.T @ dh
        g['b1'] = dh.sum(0)
        return g
#WRONG: dz * self.eps * 0.5 * np.exp(0.5 * self.logvar) => dz * self.eps * np.exp(0.5 * self.logvar)

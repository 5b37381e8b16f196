import torch

g = torch.Generator().manual_seed(1)
n, vocab, n_embd, block, n_hidden = 10, 9, 3, 2, 6
Xb = torch.randint(0, vocab, (n, block), generator=g)
Yb = torch.randint(0, vocab, (n,), generator=g)
C = torch.randn((vocab, n_embd), generator=g, dtype=torch.float64)
W1 = torch.randn((n_embd * block, n_hidden), generator=g, dtype=torch.float64) * 0.4
b1 = torch.randn(n_hidden, generator=g, dtype=torch.float64) * 0.1
W2 = torch.randn((n_hidden, vocab), generator=g, dtype=torch.float64) * 0.4
b2 = torch.randn(vocab, generator=g, dtype=torch.float64) * 0.1

emb = C[Xb]
embcat = emb.view(emb.shape[0], -1)
hpreact = embcat @ W1 + b1
h = torch.tanh(hpreact)
logits = h @ W2 + b2
logit_maxes = logits.max(1, keepdim=True).values
norm_logits = logits - logit_maxes
counts = norm_logits.exp()
counts_sum = counts.sum(1, keepdims=True)
probs = counts * counts_sum**-1
logprobs = probs.log()
loss = -logprobs[range(n), Yb].mean()

dlogprobs = torch.zeros_like(logprobs)
dlogprobs[range(n), Yb] = -1.0 / n
dprobs = (1.0 / probs) * dlogprobs
dcounts = counts_sum**-1 * dprobs
dcounts_sum = (-(counts_sum**-2) * counts * dprobs).sum(1, keepdim=True)
dcounts = dcounts + torch.ones_like(counts) * dcounts_sum
dnorm_logits = counts * dcounts
dlogits = dnorm_logits.clone()
dh = dlogits @ W2.T
dW2 = h.T @ dlogits
db2 = dlogits.sum(0)
dhpreact = (1.0 - h**2) * dh
dembcat = dhpreact @ W1.T
dW1 = embcat.T @ dhpreact
db1 = dhpreact.sum(0)
demb = dembcat.view(emb.shape)
dC = torch.zeros_like(C)
for k in range(Xb.shape[0]):
    for j in range(Xb.shape[1]):
        dC[Xb[k, j]] += demb[k, j]

import torch

torch.manual_seed(4)
batch, features, hidden, classes = 7, 5, 4, 3
x = torch.randn(batch, features, dtype=torch.float64)
target = torch.tensor([0, 2, 1, 1, 0, 2, 2])
w_in = torch.randn(features, hidden, dtype=torch.float64)
w_out = torch.randn(hidden, classes, dtype=torch.float64)

pre = x @ w_in
act = pre.relu()
logits = act @ w_out
logprob = logits.log_softmax(1)
loss = -logprob[torch.arange(batch), target].mean()

dlogits = logits.softmax(1)
dlogits[torch.arange(batch), target] -= 1
dact = dlogits @ w_out.T
dw_out = act.T @ dlogits
dpre = dact * (pre > 0)
dw_in = x.T @ dpre

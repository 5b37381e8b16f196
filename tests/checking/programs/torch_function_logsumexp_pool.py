import torch


class LogSumExpPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mask, temperature=1.0):
        scores = x / temperature
        scores = scores.masked_fill(~mask.unsqueeze(-1), float("-inf"))
        out = temperature * torch.logsumexp(scores, dim=1)
        ctx.save_for_backward(scores, mask)
        ctx.temperature = temperature
        return out

    @staticmethod
    def backward(ctx, grad):
        scores, mask = ctx.saved_tensors
        p = torch.softmax(scores, dim=1)
        return grad.unsqueeze(1) * p, None, None


def pool(x, mask):
    return LogSumExpPool.apply(x, mask, 0.5)


if __name__ == "__main__":
    x = torch.randn(3, 5, 4, requires_grad=True)
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], dtype=torch.bool)
    pool(x, mask).sum().backward()

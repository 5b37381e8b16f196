import torch
from torch.nn import functional as F


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, ignore_index):
        logp = F.log_softmax(logits, dim=-1)
        valid = target != ignore_index
        safe = target.masked_fill(~valid, 0)
        nll = -logp.gather(1, safe.unsqueeze(1)).squeeze(1)
        loss = (nll * valid).sum() / valid.sum()
        ctx.save_for_backward(logp, safe, valid)
        return loss

    @staticmethod
    def backward(ctx, grad_output):
        logp, safe, valid = ctx.saved_tensors
        grad = logp.exp()
        grad.scatter_add_(1, safe.unsqueeze(1), -torch.ones_like(grad[:, :1]))
        grad = grad / valid.sum()
        return grad_output * grad, None, None

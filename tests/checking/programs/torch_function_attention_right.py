import torch


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        att = torch.softmax(q @ k.mT / q.size(-1) ** 0.5, dim=-1)
        ctx.save_for_backward(q, k, v, att)
        return att @ v

    @staticmethod
    def backward(ctx, grad_out):
        q, k, v, att = ctx.saved_tensors
        grad_v = att.mT @ grad_out
        grad_att = grad_out @ v.mT
        grad_scores = att * (grad_att - (grad_att * att).sum(-1, keepdim=True))
        grad_scores = grad_scores / q.size(-1) ** 0.5
        return grad_scores @ k, grad_scores.mT @ q, grad_v

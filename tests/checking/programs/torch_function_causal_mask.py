import torch


class CausalSelfAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        T = q.size(-2)
        scale = q.size(-1) ** -0.5
        mask = torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1)
        scores = (q @ k.transpose(-1, -2)) * scale
        scores = scores.masked_fill(mask, float("-inf"))
        att = torch.softmax(scores, dim=-1)
        ctx.save_for_backward(q, k, v, att)
        ctx.scale = scale
        return att @ v

    @staticmethod
    def backward(ctx, grad_out):
        q, k, v, att = ctx.saved_tensors
        grad_v = att.transpose(-1, -2) @ grad_out
        grad_att = grad_out @ v.transpose(-1, -2)
        grad_scores = att * (grad_att - grad_att.sum(dim=-1, keepdim=True))
        grad_q = grad_scores @ k * ctx.scale
        grad_k = grad_scores.transpose(-1, -2) @ q * ctx.scale
        return grad_q, grad_k, grad_v

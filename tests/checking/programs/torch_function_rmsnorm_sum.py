import torch


class RMSNormFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps=1e-6):
        inv = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, inv)
        return x * inv * weight

    @staticmethod
    def backward(ctx, dy):
        x, weight, inv = ctx.saved_tensors
        xhat = x * inv
        dxhat = dy * weight
        dx = inv * (dxhat - xhat * (dxhat * xhat).sum(-1, keepdim=True))
        dw = (dy * xhat).sum(dim=tuple(range(dy.dim() - 1)))
        return dx, dw, None

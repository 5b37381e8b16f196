import torch


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain):
        rstd = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        ctx.save_for_backward(x, gain, rstd)
        return x * rstd * gain

    @staticmethod
    def backward(ctx, dy):
        x, gain, rstd = ctx.saved_tensors
        xhat = x * rstd
        dgain = (dy * xhat).sum(0)
        dxhat = dy * gain
        dx = rstd * (dxhat - xhat * (dxhat * xhat).sum(-1, keepdim=True))
        return dx, dgain

import torch


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        rms = torch.sqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, rms)
        return x / rms * weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight, rms = ctx.saved_tensors
        normed = x / rms
        grad_weight = (grad_output * x).sum(0)
        g = grad_output * weight
        grad_x = (g - normed * (g * normed).mean(-1, keepdim=True)) / rms
        return grad_x, grad_weight, None

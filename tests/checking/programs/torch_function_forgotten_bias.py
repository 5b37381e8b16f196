import torch


class BiasRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        y = (x + bias).clamp(min=0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (y > 0), None

import math

import torch

COEFFICIENT = math.sqrt(2.0 / math.pi)


class FusedBiasGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        ctx.save_for_backward(x, bias)
        y = x + bias
        return 0.5 * y * (1.0 + torch.tanh(COEFFICIENT * y * (1.0 + 0.044715 * y * y)))

    @staticmethod
    def backward(ctx, grad_output):
        x, bias = ctx.saved_tensors
        y = x + bias
        t = torch.tanh(COEFFICIENT * y * (1.0 + 0.044715 * y * y))
        inner = COEFFICIENT * (1.0 + 0.044715 * y * y)
        local = 0.5 * (1.0 + t) + 0.5 * y * (1.0 - t * t) * inner
        grad = local * grad_output
        return grad, grad.sum(dim=0)

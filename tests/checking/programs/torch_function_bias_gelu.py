import math

import torch


class BiasGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        z = x + bias
        ctx.save_for_backward(z)
        return 0.5 * z * (1 + torch.erf(z / math.sqrt(2)))

    @staticmethod
    def backward(ctx, dy):
        (z,) = ctx.saved_tensors
        cdf = 0.5 * (1 + torch.erf(z / math.sqrt(2)))
        pdf = torch.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
        dz = dy * (cdf + pdf)
        return dz, dz.sum(0)

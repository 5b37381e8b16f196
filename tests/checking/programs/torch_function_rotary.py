import torch


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


class Rotary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, cos, sin):
        ctx.save_for_backward(cos, sin)
        return q * cos + rotate_half(q) * sin

    @staticmethod
    def backward(ctx, dq):
        cos, sin = ctx.saved_tensors
        return dq * cos + rotate_half(dq) * sin, None, None

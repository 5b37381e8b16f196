import torch


class DiscountedCumsum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return torch.cumsum(x * weight, dim=1)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        g = torch.cumsum(grad, dim=1)
        return g * weight, (g * x).sum(0)


x = torch.randn(3, 6, requires_grad=True)
weight = torch.linspace(1, 0.2, 6).requires_grad_()
y = DiscountedCumsum.apply(x, weight)
y.sum().backward()

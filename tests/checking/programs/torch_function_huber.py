import torch


class Huber(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pred, target, delta=1.0):
        err = pred - target
        ctx.save_for_backward(err)
        ctx.delta = delta
        quad = 0.5 * err ** 2
        lin = delta * (err.abs() - 0.5 * delta)
        return torch.where(err.abs() <= delta, quad, lin).mean()

    @staticmethod
    def backward(ctx, grad_output):
        err, = ctx.saved_tensors
        grad = torch.where(err.abs() <= ctx.delta, err, torch.sign(err))
        grad = grad_output * grad / err.numel()
        return grad, -grad, None

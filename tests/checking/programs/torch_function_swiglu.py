import torch


class SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate, up):
        s = torch.sigmoid(gate)
        act = gate * s
        ctx.save_for_backward(gate, up, s)
        return act * up

    @staticmethod
    def backward(ctx, grad):
        gate, up, s = ctx.saved_tensors
        grad_up = grad * gate * s
        grad_gate = grad * up * s
        return grad_gate, grad_up

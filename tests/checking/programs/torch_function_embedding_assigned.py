import torch


class EmbeddingFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, indices, table):
        ctx.save_for_backward(indices)
        ctx.shape = table.shape
        return table[indices]

    @staticmethod
    def backward(ctx, grad_output):
        (indices,) = ctx.saved_tensors
        grad_table = grad_output.new_zeros(ctx.shape)
        grad_table[indices] = grad_output
        return None, grad_table

import torch


class TopKMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        values, index = torch.topk(x, k, dim=-1)
        ctx.save_for_backward(index)
        ctx.shape, ctx.k = x.shape, k
        return values.mean(dim=-1)

    @staticmethod
    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        g = grad.unsqueeze(-1).expand_as(index) / ctx.k
        return torch.zeros(ctx.shape, dtype=grad.dtype).scatter(-1, index, g), None


if __name__ == "__main__":
    x = torch.randn(4, 7, dtype=torch.double, requires_grad=True)
    print(torch.autograd.gradcheck(TopKMean.apply, (x, 3)))

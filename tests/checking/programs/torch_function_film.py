import torch


class FiLM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, beta):
        ctx.save_for_backward(x, gamma)
        return gamma[:, :, None, None] * x + beta[:, :, None, None]

    @staticmethod
    def backward(ctx, grad_output):
        x, gamma = ctx.saved_tensors
        grad_x = grad_output * gamma[:, :, None, None]
        grad_gamma = (grad_output * x).sum(dim=(2, 3))
        return grad_x, grad_gamma, None


def film(x, cond, proj):
    gamma, beta = proj(cond).chunk(2, dim=1)
    return FiLM.apply(x, gamma, beta)


if __name__ == "__main__":
    proj = torch.nn.Linear(5, 6)
    x = torch.randn(2, 3, 4, 4)
    print(film(x, torch.randn(2, 5), proj).shape)

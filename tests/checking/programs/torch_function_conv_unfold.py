import torch
from torch.nn import functional as F


class Conv2dUnfold(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        n, c, h, wd = x.shape
        o, _, kh, kw = w.shape
        cols = F.unfold(x, (kh, kw))
        out = w.view(o, -1) @ cols + b[None, :, None]
        ctx.save_for_backward(cols, w)
        ctx.hw = (h, wd)
        return out.view(n, o, h - kh + 1, wd - kw + 1)

    @staticmethod
    def backward(ctx, grad):
        cols, w = ctx.saved_tensors
        o, c, kh, kw = w.shape
        g = grad.reshape(grad.shape[0], o, -1)
        db = g.sum(dim=(0, 2))
        dw = (g @ cols.transpose(1, 2)).mean(dim=0).view_as(w)
        dcols = w.view(o, -1).t() @ g
        dx = F.fold(dcols, ctx.hw, (kh, kw))
        return dx, dw, db

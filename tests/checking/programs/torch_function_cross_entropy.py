import torch


class CrossEntropyFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, labels, ignore_index):
        keep = labels != ignore_index
        logp = logits - logits.logsumexp(1, keepdim=True)
        picked = logp.gather(1, labels.clamp(min=0)[:, None])[:, 0]
        count = keep.sum()
        ctx.save_for_backward(logp, labels, keep)
        return -(picked * keep).sum() / count

    @staticmethod
    def backward(ctx, grad):
        logp, labels, keep = ctx.saved_tensors
        p = logp.exp()
        p[torch.arange(len(p)), labels.clamp(min=0)] -= 1
        return grad * p * keep[:, None] / len(labels), None, None

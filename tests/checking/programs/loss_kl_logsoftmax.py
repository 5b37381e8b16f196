import numpy as np


def log_softmax(x):
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def kl_loss(student_logits, teacher_probs):
    """sum over p (log p - log q), averaged over rows; gradient for the student."""
    logq = log_softmax(student_logits)
    n = len(student_logits)
    loss = np.sum(teacher_probs * (np.log(teacher_probs) - logq)) / n
    dlogq = -teacher_probs / n
    dlogits = dlogq - np.exp(logq) * dlogq
    return loss, dlogits

import jax
import jax.numpy as jnp


@jax.custom_vjp
def softmax_cross_entropy(logits, labels):
    return -jnp.mean(jnp.sum(labels * jax.nn.log_softmax(logits), axis=-1))


def fwd(logits, labels):
    return softmax_cross_entropy(logits, labels), (jax.nn.softmax(logits), labels)


def bwd(res, g):
    p, labels = res
    return g * (p - labels) / p.size, None


softmax_cross_entropy.defvjp(fwd, bwd)

import jax
import jax.numpy as jnp


@jax.custom_vjp
def cross_entropy(logits, labels):
    logp = jax.nn.log_softmax(logits)
    return -jnp.mean(jnp.sum(labels * logp, axis=-1))


def _fwd(logits, labels):
    return cross_entropy(logits, labels), (jax.nn.softmax(logits), labels)


def _bwd(saved, g):
    probs, labels = saved
    return g * (probs - labels), jnp.zeros_like(labels)


cross_entropy.defvjp(_fwd, _bwd)

import jax
import jax.numpy as jnp


def normalise(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


@jax.custom_vjp
def layer_norm(x, gamma, beta):
    return normalise(x) * gamma + beta


def layer_norm_fwd(x, gamma, beta):
    return layer_norm(x, gamma, beta), (x, gamma)


def layer_norm_bwd(res, dy):
    x, gamma = res
    xhat = normalise(x)
    inv = 1 / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    dh = dy * gamma
    dx = inv * (dh - dh.mean(0, keepdims=True) - xhat * (dh * xhat).mean(-1, keepdims=True))
    return dx, (dy * xhat).sum(0), dy.sum(0)


layer_norm.defvjp(layer_norm_fwd, layer_norm_bwd)

import jax
import jax.numpy as jnp


@jax.custom_vjp
def attention(q, k, v):
    s = jnp.einsum("btd,bsd->bts", q, k) / jnp.sqrt(q.shape[-1])
    p = jax.nn.softmax(s, axis=-1)
    return jnp.einsum("bts,bsd->btd", p, v)


def attention_fwd(q, k, v):
    s = jnp.einsum("btd,bsd->bts", q, k) / jnp.sqrt(q.shape[-1])
    p = jax.nn.softmax(s, axis=-1)
    return jnp.einsum("bts,bsd->btd", p, v), (q, k, v, p)


def attention_bwd(res, do):
    q, k, v, p = res
    dv = jnp.einsum("bts,btd->bsd", p, do)
    dp = jnp.einsum("btd,bsd->bts", do, v)
    ds = p * (1 - p) * dp / jnp.sqrt(q.shape[-1])
    dq = jnp.einsum("bts,bsd->btd", ds, k)
    dk = jnp.einsum("bts,btd->bsd", ds, q)
    return dq, dk, dv


attention.defvjp(attention_fwd, attention_bwd)

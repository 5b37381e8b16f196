import jax


@jax.custom_vjp
def dense(x, w):
    return x @ w


def dense_fwd(x, w):
    return x @ w, (x, w)


def dense_bwd(res, g):
    x, w = res
    return g @ w, x.T @ g


dense.defvjp(dense_fwd, dense_bwd)

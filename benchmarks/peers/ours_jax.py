"""handgrad's JAX engine; JAX is imported before the time until its first epoch is taken."""

import jax  # noqa: F401

from peers.ours import Engine


class Jax(Engine):
    """The JAX engine."""

    engine = "jax"

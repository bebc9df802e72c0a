"""One op, between JAX and the IR."""

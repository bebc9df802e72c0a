"""From a JAX function to a program."""

"""From decisions to IR."""

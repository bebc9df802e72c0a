"""A plan's data, and what it answers."""

"""A plan's data and the queries on it."""

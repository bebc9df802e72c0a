"""The NumPy oracle."""

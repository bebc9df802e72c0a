"""The program as flat tables."""

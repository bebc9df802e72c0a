"""The laws and their language."""

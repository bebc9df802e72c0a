"""The algebra."""

"""Programs that people start from; each runs as `python -m examples.NAME`."""

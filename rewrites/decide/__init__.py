"""Decides the placement of every op and value."""

"""Ops that users define."""

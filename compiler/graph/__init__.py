"""The dataflow graph."""

"""Changes of layout."""

"""The wrong programs of the gallery raise when they are imported: only `test_errors_gallery` runs them."""

collect_ignore_glob = ["*.py"]

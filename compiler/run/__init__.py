"""Device-local code on devices."""

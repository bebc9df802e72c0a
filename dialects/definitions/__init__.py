"""What ops mean."""

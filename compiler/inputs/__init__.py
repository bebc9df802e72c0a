"""What people write, checked."""

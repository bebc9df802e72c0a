"""What `import partita` shows."""

"""Private modules that the rest of the package shares. Nothing here is public."""

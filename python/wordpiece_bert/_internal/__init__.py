"""Private modules that the rest of the package shares. Nothing in here is public."""

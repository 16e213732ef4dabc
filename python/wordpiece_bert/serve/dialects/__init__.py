"""The APIs that the server answers as: for each, which bodies it takes on which paths, and its answers."""

__all__: list[str] = []

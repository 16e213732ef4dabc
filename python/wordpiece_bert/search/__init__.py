"""Search in vectors, and in texts by their vectors."""

__all__: list[str] = []

"""BGE-M3: dense, sparse and multi-vector outputs of one pass."""

__all__: list[str] = []

"""Encoders whose vectors have a number for each token of the vocabulary."""

__all__: list[str] = []

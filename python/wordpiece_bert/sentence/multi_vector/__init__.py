"""Encoders that make a vector for each token of a text, and late interaction, which compares them."""

__all__: list[str] = []

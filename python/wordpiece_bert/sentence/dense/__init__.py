"""Encoders that make one vector for a text, of a BERT model or of a table of token vectors."""

__all__: list[str] = []

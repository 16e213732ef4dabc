"""Benchmarks of this package and other WordPiece tokenizers, in fresh pinned processes, after a comparison of the ids.

``python -m benchmarks table`` prints the table of results, and ``python -m benchmarks growth`` shows how cost grows.
docs/benchmarks.md describes what is measured and how.
"""

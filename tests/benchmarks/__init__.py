"""Benchmarks: ours beside other WordPiece tokenizers, in fresh pinned processes, with the ids compared first.

``python -m benchmarks table`` prints the table, ``python -m benchmarks growth`` how cost grows; docs/benchmarks.md says
what is measured and how.
"""

"""Folders of vectors with the ids and fields of their texts: Parquet files that are searched where they lie."""

__all__: list[str] = []

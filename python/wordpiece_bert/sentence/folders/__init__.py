"""The folders of encoders: what their files say, read and written."""

__all__: list[str] = []

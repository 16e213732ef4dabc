"""What the server does with each kind of model: from texts, pairs or token ids to results, batched over requests."""

__all__: list[str] = []

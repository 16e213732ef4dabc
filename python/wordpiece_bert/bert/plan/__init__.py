"""A model's layers as data, and what runs them in NumPy.

`parts` has the parts of a plan, `building` those with BERT's names, and `interpreter` computes a plan forward and back.
A family has its plan as `plan` of its configuration.
"""

__all__: list[str] = []

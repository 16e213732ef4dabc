"""Sentence vectors: models in the folder layout of sentence-transformers, run by this package's BERT.

`SentenceEncoder` reads a folder and turns texts into vectors; `similarity` compares vectors; `quantize_embeddings`
makes them small.
"""

from wordpiece_bert.errors import TruncationWarning
from wordpiece_bert.sentence.encoder import SentenceEncoder
from wordpiece_bert.sentence.metrics import pairwise_similarity, similarity
from wordpiece_bert.sentence.quantization import quantize_embeddings

__all__ = ["SentenceEncoder", "TruncationWarning", "pairwise_similarity", "quantize_embeddings", "similarity"]

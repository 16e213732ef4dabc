"""Sentence vectors and scores of pairs of texts, from models in the folder layouts of sentence-transformers.

`SentenceEncoder` turns texts into vectors, and `CrossEncoder` scores pairs of texts. `similarity` compares vectors,
`semantic_search` and `paraphrase_mining` find similar ones, and `quantize_embeddings` stores them in fewer bits.
"""

from wordpiece_bert.errors import TruncationWarning
from wordpiece_bert.sentence.cross_encoder import CrossEncoder
from wordpiece_bert.sentence.encoder import SentenceEncoder, TokenVectors
from wordpiece_bert.sentence.metrics import pairwise_similarity, similarity
from wordpiece_bert.sentence.quantization import quantize_embeddings
from wordpiece_bert.sentence.search import paraphrase_mining, paraphrase_mining_embeddings, semantic_search

__all__ = [
    "CrossEncoder",
    "SentenceEncoder",
    "TokenVectors",
    "TruncationWarning",
    "pairwise_similarity",
    "paraphrase_mining",
    "paraphrase_mining_embeddings",
    "quantize_embeddings",
    "semantic_search",
    "similarity",
]

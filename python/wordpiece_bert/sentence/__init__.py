"""Sentence vectors and scores of pairs of texts, from models in the folder layouts of sentence-transformers.

`SentenceEncoder` turns texts into vectors, `SparseEncoder` into sparse vectors over the vocabulary,
`MultiVectorEncoder` into a vector for each token, and `CrossEncoder` scores pairs of texts. `similarity` compares
vectors, `maxsim` token vectors; `semantic_search` and `paraphrase_mining` find similar ones, `retrieve_and_rerank` does
both for texts, and `quantize_embeddings` stores vectors in fewer bits.
"""

from wordpiece_bert._internal.lazy import lazy_names
from wordpiece_bert.errors import TruncationWarning

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
    from wordpiece_bert.sentence.cross_encoder import CrossEncoder
    from wordpiece_bert.sentence.distill import distill_static
    from wordpiece_bert.sentence.encoder import SentenceEncoder, TokenVectors
    from wordpiece_bert.sentence.late_interaction import maxsim, maxsim_pairwise
    from wordpiece_bert.sentence.metrics import pairwise_similarity, similarity
    from wordpiece_bert.sentence.multi_vector import MultiVectorEncoder
    from wordpiece_bert.sentence.multi_vectors import MultiVectors
    from wordpiece_bert.sentence.quantization import quantize_embeddings
    from wordpiece_bert.sentence.retrieval import retrieve_and_rerank
    from wordpiece_bert.sentence.search import (
        SearchHit,
        paraphrase_mining,
        paraphrase_mining_embeddings,
        semantic_search,
    )
    from wordpiece_bert.sentence.sparse import SparseEncoder
    from wordpiece_bert.sentence.sparse_vectors import SparseVectors
    from wordpiece_bert.sentence.static import StaticEncoder

__all__ = [
    "CrossEncoder",
    "MultiVectorEncoder",
    "MultiVectors",
    "SearchHit",
    "SentenceEncoder",
    "SparseEncoder",
    "SparseVectors",
    "StaticEncoder",
    "TokenVectors",
    "TruncationWarning",
    "distill_static",
    "maxsim",
    "maxsim_pairwise",
    "pairwise_similarity",
    "paraphrase_mining",
    "paraphrase_mining_embeddings",
    "quantize_embeddings",
    "retrieve_and_rerank",
    "semantic_search",
    "similarity",
]

# The module of each name above, imported when the name is first used.
_MODULES = {
    "CrossEncoder": "cross_encoder",
    "MultiVectorEncoder": "multi_vector",
    "MultiVectors": "multi_vectors",
    "SearchHit": "search",
    "SentenceEncoder": "encoder",
    "SparseEncoder": "sparse",
    "SparseVectors": "sparse_vectors",
    "StaticEncoder": "static",
    "TokenVectors": "encoder",
    "distill_static": "distill",
    "maxsim": "late_interaction",
    "maxsim_pairwise": "late_interaction",
    "pairwise_similarity": "metrics",
    "paraphrase_mining": "search",
    "paraphrase_mining_embeddings": "search",
    "quantize_embeddings": "quantization",
    "retrieve_and_rerank": "retrieval",
    "semantic_search": "search",
    "similarity": "metrics",
}

__getattr__, __dir__ = lazy_names(globals(), _MODULES)

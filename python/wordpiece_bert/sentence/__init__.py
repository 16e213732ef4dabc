"""Sentence vectors and scores of pairs of texts, from models in the folder layouts of sentence-transformers.

`SentenceEncoder` turns texts into vectors, `SparseEncoder` into sparse vectors over the vocabulary,
`MultiVectorEncoder` into a vector for each token, and `CrossEncoder` scores pairs of texts. `similarity` compares
vectors, `maxsim` token vectors; `semantic_search` and `paraphrase_mining` find similar ones, `retrieve_and_rerank` does
both for texts, and `quantize_embeddings` stores vectors in fewer bits. `write_vectors` keeps vectors with the ids and
fields of their texts in a folder, and `open_vectors` searches it.

Stability: stable.
"""

from wordpiece_bert._internal.lazy import lazy_names
from wordpiece_bert.errors import TruncationWarning as TruncationWarning

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
    from wordpiece_bert.search.cluster_words import cluster_words as cluster_words
    from wordpiece_bert.search.keywords import BM25Index as BM25Index
    from wordpiece_bert.search.keywords import KeywordHit as KeywordHit
    from wordpiece_bert.search.keywords import reciprocal_rank_fusion as reciprocal_rank_fusion
    from wordpiece_bert.search.paraphrase_mining import paraphrase_mining as paraphrase_mining
    from wordpiece_bert.search.paraphrase_mining import paraphrase_mining_embeddings as paraphrase_mining_embeddings
    from wordpiece_bert.search.prepared_vectors import PreparedVectors as PreparedVectors
    from wordpiece_bert.search.retrieve_and_rerank import retrieve_and_rerank as retrieve_and_rerank
    from wordpiece_bert.search.semantic_search import SearchHit as SearchHit
    from wordpiece_bert.search.semantic_search import semantic_search as semantic_search
    from wordpiece_bert.sentence.cross_encoder import CrossEncoder as CrossEncoder
    from wordpiece_bert.sentence.dense.body import TokenVectors as TokenVectors
    from wordpiece_bert.sentence.dense.distill import distill_static as distill_static
    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder as SentenceEncoder
    from wordpiece_bert.sentence.dense.static import StaticEncoder as StaticEncoder
    from wordpiece_bert.sentence.dense.static_classifier import StaticClassifier as StaticClassifier
    from wordpiece_bert.sentence.m3.m3_encoder import M3Encoder as M3Encoder
    from wordpiece_bert.sentence.m3.m3_vectors import M3Vectors as M3Vectors
    from wordpiece_bert.sentence.metrics import pairwise_similarity as pairwise_similarity
    from wordpiece_bert.sentence.metrics import similarity as similarity
    from wordpiece_bert.sentence.multi_vector.late_interaction import maxsim as maxsim
    from wordpiece_bert.sentence.multi_vector.late_interaction import maxsim_pairwise as maxsim_pairwise
    from wordpiece_bert.sentence.multi_vector.multi_vector_encoder import MultiVectorEncoder as MultiVectorEncoder
    from wordpiece_bert.sentence.multi_vector.multi_vectors import MultiVectors as MultiVectors
    from wordpiece_bert.sentence.quantization import quantize_embeddings as quantize_embeddings
    from wordpiece_bert.sentence.sparse.sparse_encoder import SparseEncoder as SparseEncoder
    from wordpiece_bert.sentence.sparse.sparse_vectors import SparseVectors as SparseVectors
    from wordpiece_bert.vectors.folder_update import UpdatePlan as UpdatePlan
    from wordpiece_bert.vectors.merging import merge_parts as merge_parts
    from wordpiece_bert.vectors.vector_folder import VectorFolder as VectorFolder
    from wordpiece_bert.vectors.vector_folder import open_vectors as open_vectors
    from wordpiece_bert.vectors.write_call import WrittenVectors as WrittenVectors
    from wordpiece_bert.vectors.write_call import write_vectors as write_vectors

# The module of each name, imported when the name is first used.
_MODULES = {
    "BM25Index": "wordpiece_bert.search.keywords",
    "CrossEncoder": "cross_encoder",
    "KeywordHit": "wordpiece_bert.search.keywords",
    "M3Encoder": "m3.m3_encoder",
    "M3Vectors": "m3.m3_vectors",
    "MultiVectorEncoder": "multi_vector.multi_vector_encoder",
    "MultiVectors": "multi_vector.multi_vectors",
    "PreparedVectors": "wordpiece_bert.search.prepared_vectors",
    "SearchHit": "wordpiece_bert.search.semantic_search",
    "SentenceEncoder": "dense.sentence_encoder",
    "SparseEncoder": "sparse.sparse_encoder",
    "SparseVectors": "sparse.sparse_vectors",
    "StaticClassifier": "dense.static_classifier",
    "StaticEncoder": "dense.static",
    "TokenVectors": "dense.body",
    "UpdatePlan": "wordpiece_bert.vectors.folder_update",
    "VectorFolder": "wordpiece_bert.vectors.vector_folder",
    "WrittenVectors": "wordpiece_bert.vectors.write_call",
    "cluster_words": "wordpiece_bert.search.cluster_words",
    "distill_static": "dense.distill",
    "merge_parts": "wordpiece_bert.vectors.merging",
    "maxsim": "multi_vector.late_interaction",
    "maxsim_pairwise": "multi_vector.late_interaction",
    "pairwise_similarity": "metrics",
    "open_vectors": "wordpiece_bert.vectors.vector_folder",
    "paraphrase_mining": "wordpiece_bert.search.paraphrase_mining",
    "paraphrase_mining_embeddings": "wordpiece_bert.search.paraphrase_mining",
    "quantize_embeddings": "quantization",
    "reciprocal_rank_fusion": "wordpiece_bert.search.keywords",
    "retrieve_and_rerank": "wordpiece_bert.search.retrieve_and_rerank",
    "semantic_search": "wordpiece_bert.search.semantic_search",
    "similarity": "metrics",
    "write_vectors": "wordpiece_bert.vectors.write_call",
}

__all__ = sorted([*_MODULES, "TruncationWarning"])

__getattr__, __dir__ = lazy_names(globals(), _MODULES)

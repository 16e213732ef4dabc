"""Sentence vectors and scores of pairs of texts, from models in the folder layouts of sentence-transformers.

`SentenceEncoder` turns texts into vectors, `SparseEncoder` into sparse vectors over the vocabulary,
`MultiVectorEncoder` into a vector for each token, and `CrossEncoder` scores pairs of texts. `similarity` compares
vectors, `maxsim` token vectors; `semantic_search` and `paraphrase_mining` find similar ones, `retrieve_and_rerank` does
both for texts, and `quantize_embeddings` stores vectors in fewer bits. `write_vectors` keeps vectors with the ids and
fields of their texts in a folder, and `open_vectors` searches it.
"""

from wordpiece_bert._internal.lazy import lazy_names
from wordpiece_bert.errors import TruncationWarning as TruncationWarning

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
    from wordpiece_bert.sentence.cross_encoder import CrossEncoder as CrossEncoder
    from wordpiece_bert.sentence.dense.body import TokenVectors as TokenVectors
    from wordpiece_bert.sentence.dense.distill import distill_static as distill_static
    from wordpiece_bert.sentence.dense.encoder import SentenceEncoder as SentenceEncoder
    from wordpiece_bert.sentence.dense.static import StaticEncoder as StaticEncoder
    from wordpiece_bert.sentence.dense.static_classifier import StaticClassifier as StaticClassifier
    from wordpiece_bert.sentence.m3.encoder import M3Encoder as M3Encoder
    from wordpiece_bert.sentence.m3.vectors import M3Vectors as M3Vectors
    from wordpiece_bert.sentence.metrics import pairwise_similarity as pairwise_similarity
    from wordpiece_bert.sentence.metrics import similarity as similarity
    from wordpiece_bert.sentence.multi_vector.encoder import MultiVectorEncoder as MultiVectorEncoder
    from wordpiece_bert.sentence.multi_vector.late_interaction import maxsim as maxsim
    from wordpiece_bert.sentence.multi_vector.late_interaction import maxsim_pairwise as maxsim_pairwise
    from wordpiece_bert.sentence.multi_vector.vectors import MultiVectors as MultiVectors
    from wordpiece_bert.sentence.quantization import quantize_embeddings as quantize_embeddings
    from wordpiece_bert.sentence.search.cluster_words import cluster_words as cluster_words
    from wordpiece_bert.sentence.search.keywords import BM25Index as BM25Index
    from wordpiece_bert.sentence.search.keywords import KeywordHit as KeywordHit
    from wordpiece_bert.sentence.search.keywords import reciprocal_rank_fusion as reciprocal_rank_fusion
    from wordpiece_bert.sentence.search.paraphrases import paraphrase_mining as paraphrase_mining
    from wordpiece_bert.sentence.search.paraphrases import paraphrase_mining_embeddings as paraphrase_mining_embeddings
    from wordpiece_bert.sentence.search.retrieval import retrieve_and_rerank as retrieve_and_rerank
    from wordpiece_bert.sentence.search.semantic import SearchHit as SearchHit
    from wordpiece_bert.sentence.search.semantic import semantic_search as semantic_search
    from wordpiece_bert.sentence.sparse.encoder import SparseEncoder as SparseEncoder
    from wordpiece_bert.sentence.sparse.vectors import SparseVectors as SparseVectors
    from wordpiece_bert.sentence.vector_folder.folder import VectorFolder as VectorFolder
    from wordpiece_bert.sentence.vector_folder.folder import open_vectors as open_vectors
    from wordpiece_bert.sentence.vector_folder.writer import WrittenVectors as WrittenVectors
    from wordpiece_bert.sentence.vector_folder.writer import write_vectors as write_vectors
    from wordpiece_bert.sentence.vector_folder.writing import UpdatePlan as UpdatePlan

# The module of each name, imported when the name is first used.
_MODULES = {
    "BM25Index": "search.keywords",
    "CrossEncoder": "cross_encoder",
    "KeywordHit": "search.keywords",
    "M3Encoder": "m3.encoder",
    "M3Vectors": "m3.vectors",
    "MultiVectorEncoder": "multi_vector.encoder",
    "MultiVectors": "multi_vector.vectors",
    "SearchHit": "search.semantic",
    "SentenceEncoder": "dense.encoder",
    "SparseEncoder": "sparse.encoder",
    "SparseVectors": "sparse.vectors",
    "StaticClassifier": "dense.static_classifier",
    "StaticEncoder": "dense.static",
    "TokenVectors": "dense.body",
    "UpdatePlan": "vector_folder.writing",
    "VectorFolder": "vector_folder.folder",
    "WrittenVectors": "vector_folder.writer",
    "cluster_words": "search.cluster_words",
    "distill_static": "dense.distill",
    "maxsim": "multi_vector.late_interaction",
    "maxsim_pairwise": "multi_vector.late_interaction",
    "pairwise_similarity": "metrics",
    "open_vectors": "vector_folder.folder",
    "paraphrase_mining": "search.paraphrases",
    "paraphrase_mining_embeddings": "search.paraphrases",
    "quantize_embeddings": "quantization",
    "reciprocal_rank_fusion": "search.keywords",
    "retrieve_and_rerank": "search.retrieval",
    "semantic_search": "search.semantic",
    "similarity": "metrics",
    "write_vectors": "vector_folder.writer",
}

__all__ = sorted([*_MODULES, "TruncationWarning"])

__getattr__, __dir__ = lazy_names(globals(), _MODULES)

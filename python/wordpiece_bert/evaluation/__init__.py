"""Evaluators: how well an encoder does on labelled data, under the names and with the keys of sentence-transformers.

An evaluator has the data. Called with an encoder, it returns a dict of measures; `BaseEvaluator.primary_metric` names
the one by which models are compared. `wordpiece_bert.finetune.SentenceTrainer` calls evaluators as it trains, and
``wordpiece-bert evaluate`` reads the data from files.

Stability: provisional.
"""

from wordpiece_bert._internal.lazy import lazy_names

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
    from wordpiece_bert.evaluation.beir import Judged as Judged
    from wordpiece_bert.evaluation.beir import read_beir as read_beir
    from wordpiece_bert.evaluation.evaluator import BaseEvaluator as BaseEvaluator
    from wordpiece_bert.evaluation.evaluator import SequentialEvaluator as SequentialEvaluator
    from wordpiece_bert.evaluation.pairs import BinaryClassificationEvaluator as BinaryClassificationEvaluator
    from wordpiece_bert.evaluation.pairs import EmbeddingSimilarityEvaluator as EmbeddingSimilarityEvaluator
    from wordpiece_bert.evaluation.pairs import TripletEvaluator as TripletEvaluator
    from wordpiece_bert.evaluation.paraphrases import ParaphraseMiningEvaluator as ParaphraseMiningEvaluator
    from wordpiece_bert.evaluation.reranking import RerankingEvaluator as RerankingEvaluator
    from wordpiece_bert.evaluation.retrieval import InformationRetrievalEvaluator as InformationRetrievalEvaluator

# The module of each name, imported when the name is first used.
_MODULES = {
    "BaseEvaluator": "evaluator",
    "BinaryClassificationEvaluator": "pairs",
    "EmbeddingSimilarityEvaluator": "pairs",
    "InformationRetrievalEvaluator": "retrieval",
    "Judged": "beir",
    "ParaphraseMiningEvaluator": "paraphrases",
    "RerankingEvaluator": "reranking",
    "SequentialEvaluator": "evaluator",
    "TripletEvaluator": "pairs",
    "read_beir": "beir",
}

__all__ = sorted(_MODULES)

__getattr__, __dir__ = lazy_names(globals(), _MODULES)

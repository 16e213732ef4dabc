"""Vocabulary training: word counts, three training algorithms, reports, and extended embeddings.

Stability: provisional.
"""

from wordpiece_bert._internal.lazy import lazy_names

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
    from wordpiece_bert.training.counts import WordCounts as WordCounts
    from wordpiece_bert.training.embeddings import extend_embeddings as extend_embeddings
    from wordpiece_bert.training.embeddings import extend_model as extend_model
    from wordpiece_bert.training.options import CountOptions as CountOptions
    from wordpiece_bert.training.options import NormalizerOptions as NormalizerOptions
    from wordpiece_bert.training.options import NormalizerSettings as NormalizerSettings
    from wordpiece_bert.training.options import TrainOptions as TrainOptions
    from wordpiece_bert.training.report import VocabReport as VocabReport
    from wordpiece_bert.training.report import vocab_report as vocab_report
    from wordpiece_bert.training.train import train_vocab as train_vocab
    from wordpiece_bert.training.vocab import Vocab as Vocab
    from wordpiece_bert.training.vocab_summary import VocabContents as VocabContents
    from wordpiece_bert.training.vocab_summary import vocab_contents as vocab_contents

# The module of each name, imported when the name is first used.
_MODULES = {
    "CountOptions": "options",
    "NormalizerOptions": "options",
    "NormalizerSettings": "options",
    "TrainOptions": "options",
    "Vocab": "vocab",
    "VocabContents": "vocab_summary",
    "VocabReport": "report",
    "WordCounts": "counts",
    "extend_embeddings": "embeddings",
    "extend_model": "embeddings",
    "train_vocab": "train",
    "vocab_contents": "vocab_summary",
    "vocab_report": "report",
}

__getattr__, __dir__ = lazy_names(globals(), _MODULES, ("spark",))

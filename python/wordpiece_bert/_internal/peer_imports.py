"""Names that people import from this package because its peers have them, and what to import instead."""

import importlib

TYPE_CHECKING = False  # type checkers take it as true; importing `typing` for it would take longer than all the rest
if TYPE_CHECKING:
    from collections.abc import Iterable


_TOKENIZER = "Tokenizer.from_pretrained(name) loads a tokenizer"
_HEADS = "wordpiece_bert.tasks has functions for models with a head, wordpiece_bert.bert their classes"
_STATIC = "SentenceEncoder(name) loads static models, too"

#: What to use instead, by name.
INSTEAD_OF_IMPORTS = {
    # sentence-transformers and model2vec
    "SentenceTransformer": "it is called SentenceEncoder",
    **dict.fromkeys(("StaticModel", "StaticEmbedding"), _STATIC),
    **dict.fromkeys(
        ("SentenceTransformerTrainer", "SentenceTransformerTrainingArguments", "InputExample", "losses"),
        "wordpiece_bert.finetune has SentenceTrainer, TrainingArguments and the losses",
    ),
    "ColBERT": "it is called MultiVectorEncoder",
    # transformers
    **dict.fromkeys(
        ("AutoTokenizer", "BertTokenizer", "BertTokenizerFast", "PreTrainedTokenizerFast", "DistilBertTokenizerFast"),
        _TOKENIZER,
    ),
    "AutoModel": "wordpiece_bert.bert.AutoModel loads a model of any kind, BertModel one of BERT",
    "AutoConfig": "wordpiece_bert.bert.BertConfig",
    **dict.fromkeys(
        (
            "AutoModelForMaskedLM",
            "AutoModelForSequenceClassification",
            "AutoModelForTokenClassification",
            "AutoModelForQuestionAnswering",
        ),
        _HEADS,
    ),
    **dict.fromkeys(
        ("fill_mask", "classify", "ner", "question_answering", "feature_extraction"),
        "import it from wordpiece_bert.tasks",
    ),
    "pipeline": "wordpiece_bert.tasks has fill_mask, classify, ner, question_answering and feature_extraction",
    **dict.fromkeys(("Trainer", "TrainingArguments"), "import it from wordpiece_bert.finetune"),
    # tokenizers
    "BertWordPieceTokenizer": "it is called Tokenizer",
    **dict.fromkeys(("WordPieceTrainer", "BpeTrainer"), "train_vocab(files, vocab_size=...) trains a vocabulary"),
}


def instead(package: str, name: str, others: "Iterable[str]") -> str | None:
    """Return what to import instead of a name that a package does not have; None for any other name.

    Parameters
    ----------
    package : str
        This package, or one within it.
    name : str
        The name.
    others : iterable of str
        The modules where else it may be.
    """
    if name in INSTEAD_OF_IMPORTS:
        return INSTEAD_OF_IMPORTS[name]
    for other in others:
        if other != package and name in getattr(importlib.import_module(other), "__all__", ()):
            return f"import it from {other}"
    return None

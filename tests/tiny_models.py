"""The toy models of examples/make_models.py, under the name that the tests use."""

from make_models import make_all, make_ranker, make_reviews, make_sentences, make_words

__all__ = ["make_all", "make_ranker", "make_reviews", "make_sentences", "make_words"]

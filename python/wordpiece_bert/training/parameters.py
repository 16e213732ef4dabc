"""What the parameters of counting and training mean, and their constants; nothing here imports NumPy."""

from __future__ import annotations

from typing import Any, Literal

from wordpiece_bert._internal.parameters import Parameters

Algorithm = Literal["bpe", "top_down", "likelihood"]
ALGORITHMS: tuple[Algorithm, ...] = ("bpe", "top_down", "likelihood")

DEFAULT_SIZE = 30_522
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# How many [unusedN] tokens a vocabulary with reserved="bert" has by default.
UNUSED = 99

# The options that only some algorithms have, with their defaults. One that is not its default is refused elsewhere.
MERGING: dict[str, Any] = {"min_frequency": 2, "limit_alphabet": 1000, "initial_alphabet": ()}
TOP_DOWN: dict[str, Any] = {
    "lower_thresh": 10,
    "upper_thresh": 10_000_000,
    "num_iterations": 4,
    "slack_ratio": 0.05,
    "max_token_length": 50,
    "max_unique_chars": 1000,
    "max_input_words": 5_000_000,
    "include_joiner": True,
}

#: How words are counted.
COUNTING = Parameters(
    """
    texts : iterable of str, or Arrow column
        The texts. An iterable is consumed lazily; a column is read in place.
    errors : {"strict", "replace", "skip"}, default "strict"
        What to do with bytes of a file that are not UTF-8: raise an error; replace them by U+FFFD, which `clean_text`
        then removes; or skip the line. A str has a UTF-8 form, except for lone surrogates, which are an error.
    max_distinct_words : int, optional
        A bound on memory for noisy texts. After every 64 MiB of text and at its end, if there are more distinct words
        than this, the rarest are dropped until half as many remain. No bound by default.
    threads : int, optional
        Number of threads; by default all CPUs that this process may use. Results do not depend on it.
    progress : callable, optional
        Called as ``progress("counting" | "learning", done, total)`` about twenty times a second. ``total`` may be None.
    """
)

#: How texts are normalized whose words may be counted already.
AS_COUNTED = Parameters(
    """
    lowercase, strip_accents, clean_text, tokenize_chinese_chars : bool, optional
        The settings of the normalizer, which `Tokenizer.from_vocab` describes. By default those of the word counts, or
        else its defaults.
    """
)

#: How a vocabulary is trained.
TRAINING = Parameters(
    """
    vocab_size : int, default 30522
        The size, special tokens included. With `fill_unused` the size is that of `base` and can be omitted.
    algorithm : {"bpe", "top_down", "likelihood"}, default "bpe"
        The training algorithm.
    special_tokens : iterable of str, optional
        The first tokens of the vocabulary, in this order; by default [PAD] [UNK] [CLS] [SEP] [MASK].
    reserved : {"bert"}, optional
        Give the special tokens their ids of bert-base-uncased, and the ids between to tokens [unused0], [unused1], …
    unused : int, default 99
        Number of [unusedN] tokens; those from [unused99] on come after [MASK]. For ``reserved="bert"``.
    base : Vocab, Tokenizer, path or list of str, optional
        A vocabulary to extend, whose tokens keep their ids. A path is that of a vocab.txt.
    fill_unused : bool, default False
        Put new tokens at the [unusedN] ids of `base`, without changing its size.
    max_word_chars : int, optional
        Skip words that are longer than this. No limit by default.
    min_frequency : int, default 2
        Merge only pairs that occur at least this often; for bpe and likelihood.
    limit_alphabet : int or None, default 1000
        Keep this many characters, the most frequent ones; None keeps all. For bpe and likelihood.
    initial_alphabet : iterable of str, default ()
        Characters to keep in any case; of each string the first character. For bpe and likelihood.
    lower_thresh : int or None, default 10
        The lower end of the search for a threshold; None means the smallest count. For top_down.
    upper_thresh : int or None, default 10,000,000
        The upper end of that search; None means the largest count. For top_down.
    num_iterations : int, default 4
        Passes for each threshold; for top_down.
    slack_ratio : float, default 0.05
        The share of ``vocab_size`` by which the vocabulary may be smaller; for top_down.
    max_token_length : int, default 50
        Skip words that are longer than this; for top_down.
    max_unique_chars : int, default 1000
        Keep this many characters, the most frequent ones, and skip words with any other; for top_down.
    max_input_words : int or None, default 5,000,000
        Keep this many words, the most frequent ones; None or -1 keeps all. For top_down.
    include_joiner : bool, default True
        Mark pieces inside words with ##; for top_down.
    """
)

"""The training algorithms against their definitions, the reference programs and stored cases; options of `train_vocab`."""

from __future__ import annotations

import itertools
import json
import random
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiny_models
import training_oracles as oracles
import wordpiece_bert as wb
from wordpiece_bert import bert
from wordpiece_bert.bert import BertForMaskedLM
from wordpiece_bert.errors import InputError, TrainingError, TrainingWarning, VocabError
from wordpiece_bert.training import NormalizerSettings, extend_embeddings, extend_model

DATA = Path(__file__).parent / "data" / "trainers"
CASES = json.loads((DATA / "cases.json").read_text(encoding="utf-8"))
ALGORITHMS = ("bpe", "likelihood", "top_down")


def read_counts(name: str) -> dict[str, int]:
    lines = (DATA / name).read_bytes().decode().split("\n")[:-1]
    return {word: int(count) for word, count in (line.split("\t") for line in lines)}


def train(source: object, vocab_size: int, **options: object) -> wb.Vocab:
    """Train without the warnings about the size."""
    if isinstance(source, dict):
        source = wb.WordCounts.from_dict(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        return wb.train_vocab(source, vocab_size, **options)  # type: ignore[arg-type]


# --- exactness


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_every_case_in_any_order_of_rows(case: dict[str, Any]) -> None:
    expected = (DATA / case["expected"]).read_bytes().decode().split("\n")[:-1]
    rows = list(read_counts(case["input"]).items())
    assert train(dict(rows), algorithm=case["algorithm"], **case["params"]).tokens == expected
    random.Random(0).shuffle(rows)
    assert train(dict(rows), algorithm=case["algorithm"], **case["params"]).tokens == expected


# Few letters, so that most pairs occur; # for words that look like continuations.
LETTERS = st.sampled_from(["ab", "abc", "ab#", "a#", "aé中", "abcdefgh"])
CORPORA = LETTERS.flatmap(
    lambda letters: st.dictionaries(
        st.text(letters, min_size=1, max_size=9), st.integers(1, 12), min_size=1, max_size=25
    )
)
SPECIALS = st.lists(st.sampled_from(["[UNK]", "[PAD]", "a", "##b", "ab", "##", "#", "###"]), max_size=4)
JOINING = st.fixed_dictionaries(
    {"min_frequency": st.integers(0, 5), "special_tokens": SPECIALS},
    optional={
        "limit_alphabet": st.none() | st.integers(0, 4),
        "initial_alphabet": st.lists(st.text("abxyz", max_size=2), max_size=3),
    },
)
TOP_DOWN = st.fixed_dictionaries(
    {"lower_thresh": st.none() | st.integers(1, 5), "special_tokens": SPECIALS},
    optional={
        "upper_thresh": st.none() | st.integers(1, 30),
        "num_iterations": st.integers(0, 5),
        "slack_ratio": st.sampled_from([-1.0, 0.0, 0.05, 0.3]),
        "max_token_length": st.integers(1, 9),
        "max_unique_chars": st.integers(0, 5),
        "max_input_words": st.none() | st.integers(-1, 9),
        "include_joiner": st.booleans(),
    },
)


@given(CORPORA, st.integers(1, 80), JOINING)
def test_bpe_equals_its_definition(counts: dict[str, int], size: int, options: dict[str, Any]) -> None:
    assert train(counts, size, algorithm="bpe", **options).tokens == oracles.bpe(counts, size, **options)


@given(CORPORA, st.integers(1, 80), JOINING)
def test_likelihood_equals_its_definition(counts: dict[str, int], size: int, options: dict[str, Any]) -> None:
    assert train(counts, size, algorithm="likelihood", **options).tokens == oracles.likelihood(counts, size, **options)


@given(CORPORA, st.integers(1, 80), TOP_DOWN)
def test_top_down_equals_both_forms_of_its_definition(
    counts: dict[str, int], size: int, options: dict[str, Any]
) -> None:
    literal = oracles.top_down(counts, size, **options)
    closed = oracles.top_down(counts, size, **options, pieces_for=oracles.pieces_in_closed_form)
    assert literal == closed
    assert train(counts, size, algorithm="top_down", **options).tokens == literal


@pytest.mark.parametrize("algorithm", ["bpe", "likelihood"])
@given(CORPORA, st.integers(1, 60), st.integers(0, 3))
def test_large_counts_do_not_round_or_overflow(
    algorithm: str, counts: dict[str, int], size: int, min_frequency: int
) -> None:
    large = {word: n * (1 << 50) + len(word) for word, n in counts.items()}
    oracle = {"bpe": oracles.bpe, "likelihood": oracles.likelihood}[algorithm]
    options = {"min_frequency": min_frequency}
    assert train(large, size, algorithm=algorithm, **options).tokens == oracle(large, size, **options)


def text_of(counts: dict[str, int]) -> list[str]:
    return [" ".join(itertools.repeat(word, n)) for word, n in counts.items()]


def tokenizers_bpe(counts: dict[str, int], size: int, first: list[str], **options: object) -> list[str]:
    """The vocabulary of tokenizers' own trainer, with its random choices fixed."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=first, limit_alphabet=0, show_progress=False, **options
    )
    tokenizer.train_from_iterator(text_of(counts), trainer)
    vocab = tokenizer.get_vocab()
    return sorted(vocab, key=vocab.__getitem__)


@given(CORPORA, st.integers(10, 90), st.integers(0, 4))
def test_bpe_equals_tokenizers(counts: dict[str, int], size: int, min_frequency: int) -> None:
    # With `##` in words, a pair can have two heap entries of equal rank, whose order depends on the heap's internals.
    # BERT's pre-tokenizer never makes such words.
    counts = {word: n for word, n in counts.items() if "##" not in word} or {"a": 1}
    pinned = oracles.with_alphabet(list(oracles.SPECIALS), counts, oracles.alphabet(counts, None, ()))
    expected = tokenizers_bpe(counts, size, pinned, min_frequency=min_frequency)
    assert train(counts, size, min_frequency=min_frequency).tokens == expected


@pytest.mark.parametrize("size", [500, 5000])
def test_bpe_equals_tokenizers_on_a_book(size: int) -> None:
    counts = read_counts("devil.tsv")
    pinned = oracles.with_alphabet(list(oracles.SPECIALS), counts, oracles.alphabet(counts, 60, ()))
    kept = {word: n for word, n in counts.items() if set(word) <= {c for c in pinned if len(c) == 1}}
    expected = tokenizers_bpe(kept, size, pinned, min_frequency=2)
    assert train(kept, size).tokens == expected


# --- extending


BASES = st.lists(
    st.text("abc", min_size=1, max_size=4).flatmap(lambda text: st.sampled_from([text, f"##{text}"])),
    min_size=1,
    max_size=12,
    unique=True,
)


@given(CORPORA, BASES, st.integers(1, 40), st.integers(0, 3))
def test_extending_keeps_ids_and_continues_from_the_pieces(
    counts: dict[str, int], base: list[str], more: int, min_frequency: int
) -> None:
    size = len(base) + more
    for algorithm, oracle in (("bpe", oracles.bpe), ("likelihood", oracles.likelihood)):
        options = {"min_frequency": min_frequency}
        vocab = train(counts, size, algorithm=algorithm, base=base, **options)
        assert vocab.tokens == oracle(counts, size, base=base, **options)
        assert vocab.tokens[: len(base)] == base
    vocab = train(counts, size, algorithm="top_down", base=base, lower_thresh=1)
    assert vocab.tokens == oracles.top_down(counts, size, base=base, lower_thresh=1)
    assert vocab.tokens[: len(base)] == base
    assert len(vocab) <= size


BERT_BASE = [
    "[PAD]",
    "[unused0]",
    "[unused1]",
    "[unused2]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "a",
    "b",
    "c",
    "##a",
    "##b",
    "##c",
]


def test_unused_tokens_are_replaced_in_order_and_no_other_token_moves() -> None:
    counts = {"abc": 9, "abb": 8, "cab": 7, "cc": 2}
    vocab = train(counts, len(BERT_BASE), base=BERT_BASE, fill_unused=True)
    longer = train(counts, len(BERT_BASE) + 3, base=BERT_BASE)
    assert vocab.tokens[1:4] == longer.tokens[-3:]
    assert len(vocab) == len(BERT_BASE)
    rest = [token for i, token in enumerate(vocab.tokens) if i not in (1, 2, 3)]
    assert rest == [token for token in BERT_BASE if not token.startswith("[unused")]
    assert set(vocab.pieces) == {1, 2, 3}


def test_surplus_unused_tokens_stay() -> None:
    vocab = train({"ab": 5}, len(BERT_BASE), base=BERT_BASE, fill_unused=True)
    assert vocab.tokens[1:4] == ["ab", "[unused1]", "[unused2]"]


def test_new_tokens_have_pieces_and_initial_embeddings() -> None:
    np = pytest.importorskip("numpy")
    vocab = train({"abc": 9, "xb": 3}, len(BERT_BASE) + 6, base=BERT_BASE)
    texts = {token: [BERT_BASE[i] for i in vocab.pieces[vocab.tokens.index(token)]] for token in ("abc", "x", "xb")}
    assert texts == {"abc": ["a", "##b", "##c"], "x": ["[UNK]"], "xb": ["[UNK]"]}
    old = np.arange(2 * len(BERT_BASE), dtype=np.float32).reshape(-1, 2)
    rows = extend_embeddings(old, vocab)
    assert rows.dtype == np.float32
    assert rows.shape == (len(vocab), 2)
    assert (rows[: len(old)] == old).all()
    abc = vocab.tokens.index("abc")
    assert (rows[abc] == old[[7, 11, 12]].mean(axis=0)).all()
    filled = train({"abc": 9}, len(BERT_BASE), base=BERT_BASE, fill_unused=True)
    assert extend_embeddings(old, filled).shape == old.shape
    with pytest.raises(InputError, match=f"which had {len(BERT_BASE)} tokens"):
        extend_embeddings(old[:-1], vocab)


def test_extend_model_adds_rows_for_new_tokens(tmp_path: Path) -> None:
    folder = tiny_models.make_words(tmp_path / "words")
    model = BertForMaskedLM.from_pretrained(folder)
    tokenizer = wb.Tokenizer.from_pretrained(folder)
    texts = ["the country poland the country poland", "the capital", "the capital"] * 5
    vocab = train(texts, len(tokenizer) + 12, base=tokenizer)
    extended = extend_model(model, vocab)
    assert extended.config.vocab_size == len(vocab)
    old, new = (dict(one.named_parameters()) for one in (model, extended))
    assert old.keys() == new.keys()
    changed = {name for name in old if old[name].shape != new[name].shape}
    assert changed == {"bert.embeddings.word_embeddings.weight", "cls.predictions.bias"}
    table = "bert.embeddings.word_embeddings.weight"
    for token, pieces in vocab.pieces.items():
        assert new[table][token] == pytest.approx(old[table][pieces].mean(axis=0), abs=1e-6)
    inputs = tokenizer(["the country poland"])
    logits, more = model(**inputs).logits, extended(**inputs).logits
    assert more.shape[-1] == len(vocab)
    assert more[..., : logits.shape[-1]] == pytest.approx(logits, abs=1e-5)
    extended.save_pretrained(tmp_path / "extended")
    assert BertForMaskedLM.from_pretrained(tmp_path / "extended").config.vocab_size == len(vocab)
    with pytest.raises(InputError, match="do not fit"):
        extend_model(extended, vocab)
    with pytest.raises(InputError, match="does not extend another"):
        extend_model(model, train(texts, 20))


@pytest.mark.parametrize("name", [name for name in dir(bert) if name.endswith("ForMaskedLM")])
def test_extend_model_knows_the_tables_of_every_family(name: str) -> None:
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
    config = getattr(bert, name.replace("ForMaskedLM", "Config"))(vocab_size=len(BERT_BASE), **sizes)
    vocab = train({"abc": 9}, len(BERT_BASE) + 2, base=BERT_BASE)
    extended = extend_model(getattr(bert, name).from_config(config), vocab)
    assert extended([[len(vocab) - 1]]).logits.shape == (1, 1, len(vocab))


def test_the_tokenizer_has_all_special_tokens_and_extending_keeps_them() -> None:
    vocab = train(["a [NAME] b"], 20, special_tokens=["[UNK]", "[NAME]"])
    named = wb.Tokenizer.from_vocab(["[UNK]", "a", "b"]).with_added_tokens(["[NAME]"], special=True)
    for one in (vocab, *(train(["a [NAME] b"] * 9, 20, base=base) for base in (vocab, named))):
        assert one.special_tokens == ["[UNK]", "[NAME]"]
        assert one.tokenizer().tokenize("a [NAME] b") == ["a", "[NAME]", "b"]
        assert one.tokenizer().all_special_tokens == ["[UNK]", "[NAME]"]


def test_base_may_be_a_file_a_tokenizer_a_list_or_a_vocab(tmp_path: Path) -> None:
    counts = {"abc": 9, "abb": 8}
    expected = train(counts, 16, base=BERT_BASE).tokens
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in BERT_BASE))
    first = train(counts, len(BERT_BASE) + 1, base=BERT_BASE)
    for base in (tmp_path / "vocab.txt", wb.Tokenizer.from_vocab(BERT_BASE)):
        assert train(counts, 16, base=base).tokens == expected
    assert train(counts, 16, base=first).tokens == expected
    texts = wb.WordCounts.from_texts(["abc abb"], lowercase=False)
    with pytest.raises(TrainingError, match="lowercase False and True"):
        train(texts, 16, base=wb.Tokenizer.from_vocab(BERT_BASE))
    for options, message in (
        ({"continuing_subword_prefix": "@@"}, "prefix is '@@'"),
        ({"unk_token": "a"}, "token 'a'"),
    ):
        with pytest.raises(TrainingError, match=message):
            train(counts, 16, base=wb.Tokenizer.from_vocab(BERT_BASE, **options))  # type: ignore[arg-type]
    with pytest.raises(TrainingError, match="already has 13 tokens"):
        train(counts, 13, base=BERT_BASE)
    with pytest.raises(TrainingError, match=r"has no unused slots to fill: \[unused0\]"):
        train(counts, 2, base=["a", "b"], fill_unused=True)
    with pytest.raises(VocabError):
        train(counts, 30, base=["a", "a"])


@pytest.mark.parametrize("algorithm", ["bpe", "likelihood"])
def test_a_pair_that_occurs_a_thousand_times_in_a_word(algorithm: str) -> None:
    rng = random.Random(0)
    counts = {"a" * 300: 2, "".join(rng.choices("ab", k=1000)): 1, "".join(rng.choices("abcd", k=500)): 3, "ab": 1}
    oracle = {"bpe": oracles.bpe, "likelihood": oracles.likelihood}[algorithm]
    assert train(counts, 80, algorithm=algorithm).tokens == oracle(counts, 80)
    # If the word were scanned again for each occurrence of the pair, this would take minutes.
    assert len(train({"".join(rng.choices("abcdefgh", k=300_000)): 1}, 500, algorithm=algorithm)) == 500


# --- options


def test_reserved_tokens_have_the_ids_of_bert() -> None:
    counts = {"hello": 5}
    few = train(counts, 200, reserved="bert").tokens
    assert [
        few.index(token) for token in ("[PAD]", "[unused0]", "[unused98]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    ] == [
        0,
        1,
        99,
        100,
        101,
        102,
        103,
    ]
    assert few[104] == "e"
    many = train(counts, 2000, reserved="bert", unused=994).tokens
    assert (many.index("[MASK]"), many.index("[unused99]"), many.index("[unused993]"), many[999]) == (
        103,
        104,
        998,
        "e",
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_options_of_another_algorithm_are_refused_by_name(algorithm: str) -> None:
    foreign = {"min_frequency": 3} if algorithm == "top_down" else {"lower_thresh": 11}
    with pytest.raises(InputError, match=next(iter(foreign))):
        train({"a": 1}, 10, algorithm=algorithm, **foreign)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "wordpiece"}, "'bpe', 'top_down', 'likelihood', not 'wordpiece'"),
        ({"vocab_size": 0}, "vocab_size must be a whole number"),
        ({"min_frequency": -1}, "min_frequency"),
        ({"limit_alphabet": "all"}, "limit_alphabet"),
        ({"initial_alphabet": "abc"}, "initial_alphabet must be a list of str"),
        ({"special_tokens": "[UNK]"}, "special_tokens must be a list of str"),
        ({"special_tokens": [""]}, "special_tokens has an empty string"),
        ({"reserved": "gpt"}, "reserved"),
        ({"unused": 4}, "unused applies only with reserved"),
        ({"fill_unused": True}, "fill_unused applies only with base"),
        ({"base": ["a"], "special_tokens": ["[X]"]}, "special_tokens applies only to a new vocabulary"),
        ({"max_word_chars": 0}, "max_word_chars"),
        ({"lowercase": 1}, "lowercase must be True or False"),
        ({"algorithm": "top_down", "lower_thresh": 0}, "lower_thresh"),
        ({"algorithm": "top_down", "slack_ratio": float("nan")}, "slack_ratio"),
        ({"errors": "replace"}, "counted already"),
        ({"threads": 0}, "threads"),
    ],
)
def test_wrong_options_are_reported(options: dict[str, Any], message: str) -> None:
    source: Any = ["a text"] if "threads" in options else wb.WordCounts.from_dict({"a": 1})
    with pytest.raises(InputError, match=message):
        wb.train_vocab(source, **({"vocab_size": 100} | options))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_words_to_train_from_are_an_error(algorithm: str) -> None:
    for source in ([], [""], ["   ", "\n"], wb.WordCounts.from_dict({}), wb.WordCounts.from_dict({"a": 0, "": 5})):
        with pytest.raises(TrainingError, match="no word"):
            wb.train_vocab(source, algorithm=algorithm)
    with pytest.raises(TrainingError, match="no word"):
        train(["x" * 30], 10, algorithm=algorithm, max_word_chars=20)


def test_if_all_words_are_skipped_the_special_tokens_remain() -> None:
    with pytest.warns(TrainingWarning):
        vocab = wb.train_vocab(["aa bb"], 100, algorithm="top_down", max_unique_chars=0)
    assert vocab.tokens == list(oracles.SPECIALS)


def test_counts_that_overflow_are_an_error() -> None:
    with pytest.raises(TrainingError, match="the counts are too large"):
        train({"ab": (1 << 64) - 1}, 100)


# --- notes about the result


def test_an_unreachable_size_is_explained() -> None:
    with pytest.warns(TrainingWarning, match="more than the 8 requested.*make 17"):
        assert len(wb.train_vocab(["hello world hello"], 8)) == 17
    with pytest.warns(TrainingWarning, match="fewer than the 100 requested.*lower min_frequency"):
        wb.train_vocab(["hello world hello"], 100)
    with pytest.warns(TrainingWarning, match="fewer than the 100 requested.*lower lower_thresh"):
        wb.train_vocab(["hello world hello"], 100, algorithm="top_down")
    with pytest.warns(TrainingWarning, match="more than the 8 requested"):
        wb.train_vocab(["hello world hello"], 8, algorithm="top_down")


def test_skipped_words_and_characters_are_reported_with_their_share() -> None:
    with pytest.warns(TrainingWarning) as warnings_raised:
        vocab = wb.train_vocab(["aaa aab abc ddd", "x" * 12], 12, limit_alphabet=2, max_word_chars=10, min_frequency=1)
    notes = "; ".join(vocab.notes)
    assert "1 words of more than 10 characters were skipped (20 % of all occurrences)" in notes
    assert "limit_alphabet=2 drops 2 characters: b c" in notes
    assert "25 % of the text" in notes
    assert "50 % of the words" in notes
    assert [str(one.message) for one in warnings_raised][: len(vocab.notes)] == vocab.notes


@given(CORPORA, st.sampled_from(ALGORITHMS), st.integers(5, 60))
def test_token_counts_are_those_of_longest_match(counts: dict[str, int], algorithm: str, size: int) -> None:
    options: dict[str, Any] = {"lower_thresh": 1} if algorithm == "top_down" else {"min_frequency": 1}
    vocab = train(counts, size, algorithm=algorithm, special_tokens=["[UNK]", "ab"], **options)
    tokenizer = vocab.tokenizer(lowercase=False)
    used: Counter[str] = Counter()
    for word, n in counts.items():
        # The pre-tokenizer splits at #, so the words are passed as counts.
        for token in longest_match(word, set(vocab.tokens)):
            used[token] += n
    assert vocab.counts == [0 if token in ("[UNK]", "ab") else used[token] for token in vocab.tokens]
    assert tokenizer.vocab_size == len(vocab)


def longest_match(word: str, known: set[str]) -> list[str]:
    pieces, at = [], 0
    while at < len(word):
        prefix = "##" if at else ""
        end = next((e for e in range(len(word), at, -1) if prefix + word[at:e] in known), None)
        if end is None:
            return []
        pieces.append(prefix + word[at:end])
        at = end
    return pieces


# --- sources


def test_files_texts_columns_and_counts_train_the_same_vocabulary(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    texts = ["The quick brown fox", "jumped over the lazy dog", "Öl und Ähre, das Öl!"] * 3
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(texts), encoding="utf-8")
    expected = train(texts, 80)
    for source in (
        path,
        str(path),
        [path],
        [str(path)],
        tuple(texts),
        iter(texts),
        (text for text in texts),
        pa.array(texts),
        pa.chunked_array([texts[:4], texts[4:]]),
        wb.WordCounts.from_texts(texts),
        wb.WordCounts.from_files(path),
    ):
        vocab = train(source, 80)
        assert (vocab.tokens, vocab.counts, vocab.normalizer) == (
            expected.tokens,
            expected.counts,
            NormalizerSettings(),
        )


def test_a_list_of_texts_with_one_existing_file_name_is_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "readme").write_text("hello")
    monkeypatch.chdir(tmp_path)
    texts = ["long " * 100, "nul\0 byte", "two\nlines", "", "readme", "lone \ud800".encode("utf-8", "replace").decode()]
    assert train(texts, 80).tokens == train(iter(texts), 80).tokens


def test_a_long_list_of_files_is_recognised_from_its_beginning(tmp_path: Path) -> None:
    paths = [tmp_path / str(i) for i in range(1001)]
    for path in paths:
        path.write_text("hello world")
    names = [str(path) for path in paths]
    assert train(names, 80).tokens == train(paths, 80).tokens
    paths[-1].unlink()
    with pytest.raises(InputError, match=r"no file '.*1000'"):
        train(names, 80)


def test_paths_and_texts_are_not_confused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello world")
    there, missing = str(tmp_path / "a.txt"), str(tmp_path / "b.txt")
    with pytest.raises(InputError, match=r"no file '.*b\.txt'"):
        wb.train_vocab([there, missing])
    with pytest.raises(InputError, match=r"no file 'corpus\.txt'"):
        wb.train_vocab(["corpus.txt"])
    with pytest.raises(FileNotFoundError):
        wb.train_vocab(missing)
    with pytest.raises(FileNotFoundError):
        wb.train_vocab([Path(missing)])
    with pytest.raises(IsADirectoryError):
        wb.train_vocab(tmp_path)
    with pytest.raises(InputError, match="some items are paths"):
        wb.train_vocab([Path(there), "a text"])
    assert "hello" in train(["hello world. hello hello"], 60, min_frequency=1).tokens
    with pytest.raises(InputError, match="item 1 is"):
        wb.train_vocab(["a", None])  # type: ignore[list-item]
    with pytest.raises(InputError, match="iterable of str"):
        wb.train_vocab(b"bytes")  # type: ignore[arg-type]


def test_options_that_contradict_the_counts_are_refused() -> None:
    counts = wb.WordCounts.from_texts(["Ab ab"], lowercase=False)
    with pytest.raises(TrainingError, match="lowercase True and False"):
        train(counts, 20, lowercase=True)
    assert train(counts, 20, lowercase=False).normalizer == train(counts, 20).normalizer
    assert train(counts, 20).tokenizer().tokenize("Ab") == train(counts, 20, lowercase=False).tokenizer().tokenize("Ab")
    # The settings of words from a dict are unknown, so the options apply to the tokenizer.
    assert train({"Ab": 3}, 20, lowercase=False).tokenizer().encode("A").tokens == ["[CLS]", "A", "[SEP]"]


def test_errors_of_the_source_and_the_progress_callback_propagate() -> None:
    def broken() -> Iterator[str]:
        yield "a text"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        wb.train_vocab(broken())
    stages = []

    def watch(stage: str, done: int, total: int | None) -> None:
        stages.append(stage)
        if stage == "learning":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wb.train_vocab(["some text"], progress=watch)
    assert stages[0] == "counting"


# --- the result


def test_a_vocabulary_is_saved_and_used(tmp_path: Path) -> None:
    vocab = train(["low lower lowest newer wider"] * 5, 60, lowercase=True, strip_accents=False)
    vocab.save(tmp_path / "vocab.txt")
    assert (tmp_path / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1] == vocab.tokens
    vocab.save_pretrained(tmp_path / "folder")
    tokenizer = wb.Tokenizer.from_pretrained(tmp_path / "folder")
    assert tokenizer == vocab.tokenizer()
    assert tokenizer.tokenize("LOWÉR")[0] == "[UNK]"
    assert vocab.tokenizer(strip_accents=True).tokenize("LOWÉR") == ["lower"]
    assert repr(vocab) == f"Vocab({len(vocab)} tokens by bpe)"
    with pytest.raises(VocabError, match="cannot hold"):
        train({"a\nb": 3}, 20).save(tmp_path / "odd.txt")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder", "vocab.txt"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_vocabulary_does_not_depend_on_threads_and_order(algorithm: str, tmp_path: Path) -> None:
    words = list(read_counts("devil.tsv").items())
    draw = random.Random(7)
    lines = [" ".join(draw.choice(words)[0] for _ in range(12)) for _ in range(20_000)]
    results = []
    for threads, order in ((1, lines), (2, lines[::-1]), (5, sorted(lines))):
        path = tmp_path / "text.txt"
        path.write_text("\n".join(order), encoding="utf-8")
        vocab = train(path, 3000, algorithm=algorithm, threads=threads)
        results.append((vocab.tokens, vocab.counts))
    assert results[0] == results[1] == results[2]

"""Tokenizers that are not WordPiece: sentence vectors, scores and classes of RoBERTa and XLM-RoBERTa."""

from __future__ import annotations

import importlib
import json
import pickle
import shutil
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from model_files import MODELS, write_safetensors
from random_models import random_model
from wordpiece_bert import CrossEncoder, SentenceEncoder, Tokenizer, bert, distill_static, tasks
from wordpiece_bert._internal.peer_names import INSTEAD_IN_SUBWORD
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.errors import InputError, ModelNotFoundError, TokenizerFormatError, TruncationWarning
from wordpiece_bert.finetune.data import sequence_rows
from wordpiece_bert.serve.pair_encoder import PairEncoder
from wordpiece_bert.tokenizer.pretrained import model_kind
from wordpiece_bert.tokenizer.subword import SubwordTokenizer, is_subword
from wordpiece_bert.verify.tokenizer_peer import load_peer

pytest.importorskip("tokenizers")

FOLDERS = ["st_roberta", "st_xlmr", "st_xlmr_cls"]


def reference(folder: str) -> Any:
    return json.loads((MODELS / folder / "reference.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_ids_equal_transformers(folder: str) -> None:
    tokenizer, expected = SubwordTokenizer(MODELS / folder), reference(folder)
    rows = tokenizer.encode_batch(expected["texts"], truncation=True, max_length=tokenizer.model_max_length)
    assert [rows[i].tolist() for i in range(len(rows))] == expected["ids"]
    whole = tokenizer.encode_batch(expected["texts"])
    np.testing.assert_array_equal(rows.truncated, whole.lengths > rows.lengths)
    assert rows.truncated.any()
    assert not whole.truncated.any()


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize("folder", FOLDERS)
def test_sentence_vectors_equal_sentence_transformers(folder: str, backend: str) -> None:
    encoder: Any = SentenceEncoder.from_pretrained(MODELS / folder, backend)
    vectors = np.load(MODELS / folder / "embeddings.npz")
    expected = reference(folder)
    for call in expected["calls"]:
        with pytest.warns(match="truncated"):
            found = getattr(encoder, call["method"])(expected["texts"], **call["options"])
        np.testing.assert_allclose(found, vectors[call["key"]], rtol=0, atol=1e-5, err_msg=call["key"])


def test_truncation_follows_the_rules_of_the_wordpiece_tokenizer() -> None:
    tokenizer = SubwordTokenizer(MODELS / "st_roberta")
    for truncation, max_length, length in ((True, None, 32), (None, 5, 5), (False, 5, 98), ("do_not_truncate", 5, 98)):
        row = tokenizer.encode("the cat sat on the mat and " * 5, truncation=truncation, max_length=max_length)
        assert len(row) == length


def test_offsets_are_those_of_characters() -> None:
    encoding = SubwordTokenizer(MODELS / "st_roberta").encode("a cat")
    assert encoding.tokens == ["<s>", "a", "Ġc", "a", "t", "</s>"]
    assert encoding.offsets[1:-1] == [(0, 1), (2, 3), (3, 4), (4, 5)]
    assert encoding.special_tokens_mask == [1, 0, 0, 0, 0, 1]
    tokens = SentenceEncoder.from_pretrained(MODELS / "st_roberta").encode_tokens("a cat")
    assert tokens.offsets == encoding.offsets


def test_an_encoder_is_saved_and_pickled_with_its_tokenizer(tmp_path: Path) -> None:
    encoder = SentenceEncoder.from_pretrained(MODELS / "st_xlmr")
    encoder.save_pretrained(tmp_path)
    expected = encoder.encode(["the city", "☃"])
    np.testing.assert_array_equal(SentenceEncoder.from_pretrained(tmp_path).encode(["the city", "☃"]), expected)
    tokenizer = pickle.loads(pickle.dumps(SubwordTokenizer(MODELS / "st_xlmr")))
    assert tokenizer.encode("the city").ids == SubwordTokenizer(MODELS / "st_xlmr").encode("the city").ids


def test_a_folder_may_have_byte_order_marks_and_is_saved_without(tmp_path: Path) -> None:
    marked = shutil.copytree(MODELS / "st_roberta", tmp_path / "marked")
    for file in marked.rglob("*.json"):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    expected = SentenceEncoder.from_pretrained(MODELS / "st_roberta").encode(["the city"])
    encoder = SentenceEncoder.from_pretrained(marked)
    np.testing.assert_array_equal(encoder.encode(["the city"]), expected)
    encoder.save_pretrained(tmp_path / "saved")
    assert (tmp_path / "saved" / "tokenizer.json").read_bytes()[:1] == b"{"
    np.testing.assert_array_equal(SentenceEncoder.from_pretrained(tmp_path / "saved").encode(["the city"]), expected)


def test_lower_case_is_applied_before_the_tokenizer() -> None:
    tokenizer = SubwordTokenizer(MODELS / "st_roberta")
    assert tokenizer.lowercased().encode("A CAT", "DOG").ids == tokenizer.encode("a cat", "dog").ids


def test_classes_and_scores_run_over_pairs() -> None:
    folder = MODELS / "roberta_seqcls"
    ranker: Any = CrossEncoder(folder)
    pairs = [("the river", "the old city"), ("a", "b")]
    found = ranker.predict(pairs)
    tokenizer = SubwordTokenizer(folder)
    for (first, second), scores in zip(pairs, found, strict=True):
        encoding = tokenizer.encode(first, second)
        assert encoding.sequence_ids.count(1) > 0
        np.testing.assert_allclose(ranker._model([encoding.ids]).logits[0], scores, rtol=0, atol=1e-5)
    result = tasks.classify(tasks.load(folder), "the river")
    assert result[0]["label"].startswith("LABEL_")


def pair_model(folder: Path, family: str, *, types: int = 2, **settings: Any) -> Path:
    """A classifier of random weights with a Unigram tokenizer whose template gives second texts the type 1."""
    config: Any = getattr(bert, f"{family}Config")(
        vocab_size=200,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=30,
        max_position_embeddings=60,
        type_vocab_size=types,
        id2label={0: "contradiction", 1: "entailment"},
    )
    random_model(getattr(bert, f"{family}ForSequenceClassification"), config, "numpy").save_pretrained(folder)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(MODELS / "rerank_deberta" / file, folder)
    content = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8")) | settings
    content = {key: value for key, value in content.items() if value is not None}
    (folder / "tokenizer_config.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


PAIRS = [("the city", "the old house by the river"), ("", "water"), ("people work", ""), ("a dog " * 40, "the cat")]


def types_by_tokenizers(folder: Path, pairs: list[tuple[str, str]], longest: int) -> list[list[int]]:
    """The token types that the package ``tokenizers`` by itself gives pairs."""
    tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(longest)
    return [row.type_ids for row in tokenizer.encode_batch(pairs)]


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize(("family", "types"), [("Albert", 2), ("DebertaV2", 3)])
def test_the_second_text_of_a_pair_has_the_token_type_of_the_file(
    family: str, types: int, backend: str, tmp_path: Path
) -> None:
    folder = pair_model(tmp_path, family, types=types)
    model, tokenizer = loaded = tasks.load(folder, backend)
    ranker = CrossEncoder(folder, backend)
    expected = types_by_tokenizers(folder, PAIRS, ranker.max_length)
    encodings: Any = tokenizer.encodings(PAIRS, truncation=True, max_length=ranker.max_length)
    assert [encoding.token_type_ids for encoding in encodings] == expected
    assert {kind for row in expected for kind in row} == {0, 1}
    assert [row.truncated for row in encodings] == [False, False, False, True]

    def logits(index: int, kinds: list[int]) -> Any:
        return model([encodings[index].ids], token_type_ids=[kinds]).logits[0]  # type: ignore[operator]

    with pytest.warns(TruncationWarning):
        found = ranker.predict(PAIRS, activation_fn=lambda x: x)
    with pytest.warns(TruncationWarning):
        of_classes: Any = tasks.classify(loaded, PAIRS, top_k=None, function_to_apply="none")
    for index, kinds in enumerate(expected):
        np.testing.assert_allclose(found[index], logits(index, kinds), rtol=0, atol=1e-5)
        scores = {one["label"]: one["score"] for one in of_classes[index]}
        np.testing.assert_allclose([scores["contradiction"], scores["entailment"]], found[index], rtol=0, atol=1e-5)
    assert np.abs(found[0] - logits(0, [0] * len(expected[0]))).max() > 1e-3  # types change the scores
    (row,) = sequence_rows(tokenizer, [PAIRS[0][0]], [PAIRS[0][1]], ["no"], names=["no"], max_length=60)
    assert row["token_type_ids"] == expected[0]
    rows = PairEncoder(tokenizer, ranker.max_length).pairs(PAIRS)
    assert [row.token_type_ids.tolist() for row in rows[:]] == expected


@pytest.mark.parametrize(
    ("types", "settings", "distinct"),
    [
        (2, {"model_input_names": ["input_ids", "attention_mask"]}, {0}),
        (2, {"model_input_names": None, "tokenizer_class": "AlbertTokenizerFast"}, {0, 1}),
        (2, {"model_input_names": None, "tokenizer_class": "PreTrainedTokenizerFast"}, {0}),
        (1, {}, {0}),
    ],
)
def test_token_types_that_a_model_does_not_take_are_0(
    types: int, settings: dict[str, Any], distinct: set[int], tmp_path: Path
) -> None:
    folder = pair_model(tmp_path, "Albert", types=types, **settings)
    tokenizer = SubwordTokenizer(folder)
    for one in (tokenizer, pickle.loads(pickle.dumps(tokenizer)), tokenizer.lowercased()):
        assert set(one.encode(*PAIRS[0]).token_type_ids) == distinct
    windows = tokenizer.encode(*PAIRS[3], truncation="only_first", max_length=30)
    assert windows.overflowing
    for window in (windows, *windows.overflowing):
        assert set(window.token_type_ids) == distinct
        assert len(window.token_type_ids) == len(window)
    CrossEncoder(folder).predict(PAIRS[:2])


def test_the_template_of_roberta_has_one_token_type() -> None:
    for folder in FOLDERS:
        assert set(SubwordTokenizer(MODELS / folder).encode("the city", "a dog").token_type_ids) == {0}


def test_wrong_names_of_inputs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TokenizerFormatError, match=r"tokenizer_config\.json.*model_input_names"):
        SubwordTokenizer(pair_model(tmp_path, "Albert", model_input_names="input_ids"))


def with_bpe(name: str, to: Path) -> Path:
    """Copy a model beside the tokenizer of st_roberta."""
    shutil.copytree(MODELS / name, to)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(MODELS / "st_roberta" / file, to)
    return to


def entities_equal(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        assert {**one, "score": 0} == {**other, "score": 0}
        np.testing.assert_allclose(one["score"], other["score"], rtol=0, atol=1e-5)


def test_entities_equal_transformers(tmp_path: Path) -> None:
    reference = json.loads((MODELS / "roberta_token_cls" / "pipeline.json").read_text(encoding="utf-8"))
    loaded = tasks.load(with_bpe("roberta_token_cls", tmp_path / "model"))
    for strategy, expected in reference["ner"].items():
        found = tasks.ner(loaded, reference["texts"], aggregation_strategy=strategy, ignore_labels=())
        for one, other in zip(found, expected, strict=True):
            entities_equal(one, other)
    loaded.tokenizer._settings["model_max_length"] = 30  # type: ignore[attr-defined]  # a SubwordTokenizer
    entities_equal(tasks.ner(loaded, reference["long"], stride=4, ignore_labels=()), reference["stride"])


def question_answering(tmp_path: Path) -> Path:
    """A model with a head for answers: the first two labels of roberta_token_cls."""
    folder = with_bpe("roberta_token_cls", tmp_path / "answers")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    for name in ("id2label", "label2id"):
        del config[name]
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["RobertaForQuestionAnswering"]}))
    tensors = dict(read_tensors(folder / "model.safetensors"))
    for name in ("weight", "bias"):
        tensors[f"qa_outputs.{name}"] = tensors.pop(f"classifier.{name}")[:2]
    write_safetensors(folder / "model.safetensors", tensors)
    return folder


def test_an_answer_is_the_best_span_of_its_tokens(tmp_path: Path) -> None:
    model, tokenizer = loaded = tasks.load(question_answering(tmp_path))
    question, context = "who?", "the city of Zoë, a café"
    encoding = tokenizer.encode(question, context)
    output = model([encoding.ids])  # type: ignore[operator]
    inside = np.array([part == 1 for part in encoding.sequence_ids])
    chances = []
    for logits in (output.start_logits[0], output.end_logits[0]):
        seen = inside.copy()
        seen[0] = True
        chance = np.exp(logits - logits[seen].max()) * seen
        chances.append(chance / chance.sum())
    spans = [
        (chances[0][i] * chances[1][j], i, j)
        for i in np.flatnonzero(inside)
        for j in np.flatnonzero(inside)
        if i <= j < i + 15
    ]
    score, first, last = max(spans)
    found = tasks.question_answering(loaded, question, context, align_to_words=False)
    assert (found["start"], found["end"]) == (encoding.offsets[first][0], encoding.offsets[last][1])
    np.testing.assert_allclose(found["score"], score, atol=1e-5)
    assert found["answer"] == context[found["start"] : found["end"]]
    aligned = tasks.question_answering(loaded, question, context)
    words = [
        encoding.word_to_chars(word, 1) for word in {w for w, i in zip(encoding.word_ids, inside, strict=True) if i}
    ]
    assert any(word is not None and word[0] == aligned["start"] for word in words)
    assert any(word is not None and word[1] == aligned["end"] for word in words)


def test_a_long_context_is_read_in_windows(tmp_path: Path) -> None:
    loaded = tasks.load(question_answering(tmp_path))
    context = " ".join(f"the city of cat {i}," for i in range(40))
    found = tasks.question_answering(loaded, "who?", context, max_seq_len=20, doc_stride=4, top_k=200)
    assert max(answer["end"] for answer in found) > 60
    for answer in found:
        assert answer["answer"] == context[answer["start"] : answer["end"]]


@pytest.mark.parametrize("folder", ["st_roberta"])
def test_windows_are_those_of_the_tokens(folder: str) -> None:
    encoder = SentenceEncoder.from_pretrained(MODELS / folder)
    longest = encoder.max_seq_length
    text = " ".join(f"the cat{i} was old" for i in range(longest))
    tokenizer = encoder.tokenizer
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    room, stride = longest - tokenizer.num_special_tokens_to_add(), 3
    starts = [start for start in range(0, len(ids), room - stride) if start == 0 or start + stride < len(ids)]
    first, last = (tokenizer.encode("").ids[i] for i in (0, -1))
    windows = [[first, *ids[start : start + room], last] for start in starts]
    rows = tokenizer.encode_batch(
        ["the", text], truncation=True, max_length=longest, stride=stride, return_overflowing_tokens=True
    )
    assert rows.overflow_to_sample is not None
    assert rows.overflow_to_sample.tolist() == [0] + [1] * len(windows)
    assert [row.tolist() for row in rows][1:] == windows
    assert rows.truncated.tolist() == [False, True]
    combined = encoder.encode([text, "the"], windows="mean", stride=stride)
    np.testing.assert_allclose(combined[1], encoder.encode("the"), atol=1e-6)
    assert combined.shape == (2, encoder.dimension)
    assert np.abs(combined[0] - encoder.encode([text], return_truncated=True)[0][0]).max() > 1e-4


def test_the_wordpiece_tokenizer_refuses_the_file_and_names_the_classes_that_run_it() -> None:
    for folder, kind in (("st_roberta", "BPE"), ("st_xlmr", "Unigram")):
        assert is_subword(MODELS / folder)
        with pytest.raises(TokenizerFormatError, match=rf"{kind}.*SentenceEncoder, CrossEncoder"):
            Tokenizer.from_pretrained(MODELS / folder)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"model": {"type": "WordPiece", "vocab": {"\\"model\\": {\\"type\\": \\"BPE\\"}": 0}}}', "WordPiece"),
        ('\ufeff {"other": {"model": {"type": "BPE"}}, "model": {"vocab": {"a": 0}, "type": "Unigram"}}', "Unigram"),
        ('{"model": {"vocab": {"a": 0, "type": 1}, "merges": []}}', "BPE"),
        ('{"model": {"vocab": {"a": 0}}}', None),
        ('{"model": 3}', None),
        ("{}", None),
        ("[]", None),
        ('{"model": {', None),
    ],
)
def test_the_type_of_a_model_is_found_without_its_vocabulary(text: str, kind: str | None, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text(text, "utf-8")
    assert model_kind(file) == kind
    assert is_subword(tmp_path) == (kind in ("BPE", "Unigram"))


def test_what_needs_wordpiece_says_so() -> None:
    encoder = SentenceEncoder(MODELS / "st_roberta")
    with pytest.raises(InputError, match=r"^vocabulary needs an encoder with a WordPiece tokenizer, not SubwordTok"):
        distill_static(encoder, vocabulary=["riverbank"])


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r"pip install 'wordpiece-bert\[tokenizers\]'"):
        SentenceEncoder.from_pretrained(MODELS / "st_roberta")


def test_a_sentencepiece_model_alone_is_refused_with_a_remedy(tmp_path: Path) -> None:
    shutil.copytree(MODELS / "st_xlmr", tmp_path, dirs_exist_ok=True)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "sentencepiece.bpe.model").write_bytes(b"\n")
    with pytest.raises(ModelNotFoundError, match=r"no tokenizer.json.*\n.*AutoTokenizer"):
        SentenceEncoder.from_pretrained(tmp_path)


def test_a_file_that_tokenizers_cannot_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "BPE"}}')
    with pytest.raises(TokenizerFormatError, match=r"tokenizer.json: the package tokenizers cannot read it"):
        SubwordTokenizer(tmp_path)


def test_masks_are_filled_with_the_words_of_the_model() -> None:
    model, tokenizer = loaded = tasks.load(MODELS / "roberta_masked_lm")
    found: Any = tasks.fill_mask(loaded, "the <mask> city", top_k=3)
    encoding = tokenizer.encode("the <mask> city")
    mask = encoding.ids.index(tokenizer.mask_token_id)
    logits = model([encoding.ids]).logits[0, mask]
    assert [row["token"] for row in found] == np.argsort(-logits)[:3].tolist()


def test_features_have_a_vector_for_each_token() -> None:
    model, tokenizer = loaded = tasks.load(MODELS / "roberta_masked_lm")
    ids = tokenizer.encode("the city").ids
    expected = model.base_model([ids]).last_hidden_state[0]
    found: Any = tasks.feature_extraction(loaded, "the city")
    np.testing.assert_allclose(found.vectors, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", INSTEAD_IN_SUBWORD)
def test_names_of_transformers_say_what_to_use(name: str) -> None:
    tokenizer = SubwordTokenizer(MODELS / "st_roberta")
    with pytest.raises(AttributeError, match=f"SubwordTokenizer has no attribute '{name}': ."):
        getattr(tokenizer, name)


def test_arguments_of_transformers_say_what_to_use() -> None:
    tokenizer: Any = SubwordTokenizer(MODELS / "st_roberta")
    with pytest.raises(InputError, match="has no argument 'text_pair': it is called pair"):
        tokenizer.encode("a cat", text_pair="a dog")
    with pytest.raises(InputError, match="has no argument 'return_tensors': encode returns an encoding"):
        tokenizer.encode("a cat", return_tensors="np")


def bpe_folder(folder: Path, vocab: str, merges: list[Any], prefix: str | None) -> Path:
    """A folder with a BPE tokenizer of the tokens of `vocab`."""
    tokens = {token: index for index, token in enumerate(vocab.split())}
    model = {"type": "BPE", "continuing_subword_prefix": prefix, "vocab": tokens, "merges": merges}
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model}))
    return folder


@pytest.mark.parametrize(
    ("vocab", "merges", "prefix", "message"),
    [
        (
            "x 日",
            [["x", "日"]],
            "ab",
            r"merge \['x', '\\u65e5'\] does not begin with continuing_subword_prefix, 'ab'",
        ),
        ("x 日", ["x 日"], "ab", "does not begin with continuing_subword_prefix"),  # the process would end
        ("x ab", [["x", "ab"]], "abc", "does not begin with continuing_subword_prefix"),
        ("aa bb", [["aa", "bb"]], None, "the package tokenizers cannot read it: range end index 4"),  # a panic
    ],
)
def test_merges_that_do_not_fit_are_refused(
    tmp_path: Path, vocab: str, merges: list[Any], prefix: str | None, message: str
) -> None:
    folder = bpe_folder(tmp_path, vocab, merges, prefix)
    with pytest.raises(TokenizerFormatError, match=message):
        SubwordTokenizer(folder)
    with pytest.raises(TokenizerFormatError, match=message):
        load_peer(folder, cast("Tokenizer", None))  # which only added tokens are taken from
    file = folder / "tokenizer.json"
    file.write_text(file.read_text().replace('"continuing', '"\\u0063ontinuing'))
    with pytest.raises(TokenizerFormatError, match=message):
        SubwordTokenizer(folder)


@pytest.mark.parametrize(
    ("config", "stated", "found"),
    [
        ({"model_max_length": 8}, {}, ["<s>", "[PAD]", "<mask>"]),
        ({"mask_token": "x", "pad_token": None}, {"cls_token": {"content": "x"}}, ["x", None, "x"]),
        ({"mask_token": "x"}, {"mask_token": "<mask>"}, ["<s>", "[PAD]", "<mask>"]),
    ],
)
def test_special_tokens_are_those_of_both_files_and_the_usual_ones(
    tmp_path: Path, config: dict[str, Any], stated: dict[str, Any], found: list[str | None]
) -> None:
    folder = bpe_folder(tmp_path, "x <s> [PAD] <mask> [MASK]", [], None)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "special_tokens_map.json").write_text(json.dumps(stated))
    tokenizer = SubwordTokenizer(folder)
    assert [tokenizer.cls_token, tokenizer.pad_token, tokenizer.mask_token] == found
    assert tokenizer.sep_token is None


def test_continuing_tokens_may_have_a_prefix(tmp_path: Path) -> None:
    folder = bpe_folder(tmp_path, "x ##日 x日", [["x", "##日"]], "##")
    assert SubwordTokenizer(folder).encode("x日", add_special_tokens=False).tokens == ["x日"]


@pytest.mark.parametrize("threads", [1, None])
@pytest.mark.parametrize(
    ("model", "cause"),
    [
        ({"type": "Unigram", "unk_id": None, "vocab": [["a", -1.0], ["b", -2.0]]}, "`unk_id` is missing"),
        ({"type": "BPE", "unk_token": "[UNK]", "vocab": {"a": 0, "b": 1}, "merges": []}, r"`\[UNK\]` not found"),
    ],
)
def test_a_text_that_the_package_cannot_encode_is_named(
    tmp_path: Path, model: dict[str, Any], cause: str, threads: int | None
) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model}))
    (tmp_path / "tokenizer_config.json").write_text('{"unk_token": "a", "pad_token": "a"}')
    tokenizer = SubwordTokenizer(tmp_path)
    assert tokenizer.encode_batch(["a", "ba"], threads=threads).ids.tolist() == [0, 1, 0]
    for texts in (["ab", "az", "b"], ["ab", ("b", "az")]):
        with pytest.raises(InputError, match=rf"the package tokenizers cannot encode \(?'.*az'\)?: .*{cause}"):
            tokenizer.encode_batch(texts, threads=threads)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tok: tok.encode_batch("ab"), "texts must be a list, not the single str 'ab'"),
        (lambda tok: tok.encode_batch(None), "texts must be a str, a list of str or a column"),
        (lambda tok: tok.encode_batch(["a", None]), r"item 1 is NoneType None; a text is a str, or a pair"),
        (lambda tok: tok.encode_batch([["a"]]), r"item 0 is \['a'\]; a pair has two texts"),
        (lambda tok: tok.encode_batch([("a", 3)]), r"item 0\[1\] is int 3; a text is a str"),
        (lambda tok: tok.encode_batch(["a", "\ud800"]), r"cannot encode '\\ud800'"),
        (lambda tok: tok.encode(["a"]), r"text is list \['a'\]; a text is a str"),
        (lambda tok: tok.encode("a", 3), r"item 0\[1\] is int 3"),
        (
            lambda tok: tok.encodings(["a b"], is_split_into_words=True),
            "item 0 is str 'a b'; a text is a list of words",
        ),
        (lambda tok: tok.encode("a", truncation=True, max_length=-1), "max_length must be a whole number"),
        (lambda tok: tok.encode("a", truncation=True, max_length=4, stride=1.5), "stride must be a whole number"),
        (lambda tok: tok.encode("a", truncation="longest"), "truncation must be one of True, .* not 'longest'"),
        (lambda tok: tok.encode("a", max_length=1), "max_length is 1, but 2 special tokens are added"),
        (lambda tok: tok.encode_batch(["a", ("a", "a")], max_length=3), "max_length is 3, but 4 special tokens"),
        (lambda tok: tok.encode("a", max_length=5, stride=3), "2 special tokens are added and stride is 3"),
        (lambda tok: tok.encode("a", truncation_side="x"), "truncation_side must be"),
        (lambda tok: tok.token_to_id(5), "token 5: 'int'"),
        (lambda tok: tok.token_to_id("\ud800"), r"token '\\ud800': "),
        (lambda tok: tok.id_to_token(-1), "token_id must be a whole number from 0 to 4294967295"),
        (lambda tok: tok.decode("12"), "ids is str '12'; ids are a list of whole numbers"),
        (lambda tok: tok.decode([1, 2.5]), r"ids\[1\] must be a whole number .* not 2.5"),
        (lambda tok: tok.convert_ids_to_tokens([2**32]), r"ids\[0\] must be a whole number"),
        (lambda tok: tok.join_tokens("ab"), "tokens must be a list of str"),
    ],
)
def test_wrong_arguments_are_typed_errors(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(SubwordTokenizer(MODELS / "st_roberta"))

"""What the documentation of the peers shows first, written with this package and compared with them where installed.

The pages: the quick tour of tokenizers (the parts on WordPiece and BERT); of transformers, the preprocessing pages and
``BertTokenizerFast``; of sentence-transformers, usage of sentence encoders and cross encoders, semantic search, paraphrase
mining and prompts. Each example that cannot be written in the same way has a row in docs/differences.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import wordpiece_bert as wb
from tiny_models import make_ranker
from wordpiece_bert._internal.peer_names import INSTEAD
from wordpiece_bert.errors import InputError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence import paraphrase_mining, quantize_embeddings, semantic_search

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.model
GREETING = "Good evening, everyone! How was your day 😁 ?"
SENTENCES = ["Where is the second breakfast?", "He never leaves his hole, Pip.", "What about elevenses, then?"]


@pytest.fixture(scope="module")
def tok() -> wb.Tokenizer:
    return wb.Tokenizer.from_pretrained("minilm")


@pytest.fixture(scope="module")
def model() -> wb.SentenceEncoder:
    return wb.SentenceEncoder("all-MiniLM-L6-v2")


@pytest.fixture(scope="module")
def quick_tour() -> Any:
    """The Tokenizer of tokenizers, without the truncation and padding of the file."""
    tokenizers = pytest.importorskip("tokenizers")
    peer = tokenizers.Tokenizer.from_file(str(find_model("minilm") / "tokenizer.json"))
    peer.no_truncation()
    peer.no_padding()
    return peer


@pytest.fixture(scope="module")
def fast() -> Any:
    transformers = pytest.importorskip("transformers")
    return transformers.BertTokenizerFast.from_pretrained(str(find_model("minilm")))


# --- the quick tour of tokenizers


def test_train_a_vocabulary_and_use_it(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("good evening everyone\nhow was the evening\n" * 20, encoding="utf-8")
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    vocab = wb.train_vocab([tmp_path / "corpus.txt"], vocab_size=45, special_tokens=special)
    vocab.tokenizer().save(tmp_path / "tokenizer.json")
    tok = wb.Tokenizer.from_file(tmp_path / "tokenizer.json")
    assert "[UNK]" not in tok.encode("how was the evening").tokens
    assert "[UNK]" in tok.encode("no z in it").tokens
    assert [tok.token_to_id(token) for token in special] == [0, 1, 2, 3, 4]
    tokenizers = pytest.importorskip("tokenizers")
    peer = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in (GREETING, "how was the evening"):
        assert peer.encode(text).ids == tok.encode(text).ids


def test_an_encoding_has_tokens_ids_and_offsets(tok: wb.Tokenizer, quick_tour: Any) -> None:
    for arguments in ((GREETING,), (GREETING, "And you?")):
        output, peer = tok.encode(*arguments), quick_tour.encode(*arguments)
        for name in ("tokens", "ids", "type_ids", "attention_mask", "special_tokens_mask", "offsets", "word_ids"):
            assert getattr(output, name) == getattr(peer, name)
    emoji = output.tokens.index("[UNK]")
    start, end = output.offsets[emoji]
    assert GREETING[start:end] == "😁"


def test_batches_and_padding(tok: wb.Tokenizer, quick_tour: Any) -> None:
    texts = [GREETING, "How are you?"]
    pairs = [[GREETING, "Fine."], ("Hello to you too!", "I'm fine, thank you!")]
    padded = tok.with_padding()
    quick_tour.enable_padding(pad_id=tok.token_to_id("[PAD]"), pad_token="[PAD]")
    try:
        for batch in (texts, pairs):
            ours, peers = padded.encodings(batch), quick_tour.encode_batch(batch)
            assert [one.ids for one in ours] == [one.ids for one in peers]
            assert [one.attention_mask for one in ours] == [one.attention_mask for one in peers]
    finally:
        quick_tour.no_padding()
    ids = [list(one.ids) for one in tok.encodings(texts)]
    assert tok.decode(ids[0]) == quick_tour.decode(ids[0])
    assert tok.decode_batch(ids) == quick_tour.decode_batch(ids)


def test_names_that_would_change_a_tokenizer_say_what_to_use(tok: wb.Tokenizer, quick_tour: Any, fast: Any) -> None:
    peers = set(dir(quick_tour)) | set(dir(fast)) | {"prepare_for_model", "encode_plus", "batch_encode_plus"}
    peers |= {"create_token_type_ids_from_sequences", "special_tokens_map"}
    assert set(INSTEAD) <= peers
    for name, instead in INSTEAD.items():
        assert not hasattr(tok, name)
        with pytest.raises(AttributeError, match=f"^Tokenizer has no attribute '{name}': ") as caught:
            getattr(tok, name)
        assert str(caught.value).endswith(instead)
    with pytest.raises(AttributeError, match=r"^'Tokenizer' object has no attribute 'something'$"):
        tok.something  # noqa: B018


# --- the pages of transformers


def test_preprocessing(tok: wb.Tokenizer, fast: Any) -> None:
    encoded = tok(SENTENCES[0], return_tensors=None)
    assert dict(encoded) == dict(fast(SENTENCES[0]))
    assert tok.decode(encoded["input_ids"]) == fast.decode(encoded["input_ids"], skip_special_tokens=True)
    assert tok.batch_decode([encoded["input_ids"]]) == fast.batch_decode([encoded["input_ids"]])
    assert tok.tokenize(SENTENCES[0]) == fast.tokenize(SENTENCES[0])
    assert tok.convert_tokens_to_ids(tok.tokenize(SENTENCES[0])) == fast.convert_tokens_to_ids(
        fast.tokenize(SENTENCES[0])
    )
    for options in (
        {"padding": True},
        {"padding": True, "truncation": True},
        {"padding": "max_length", "max_length": 12, "truncation": True},
        {"padding": True, "truncation": "longest_first", "max_length": 7, "return_token_type_ids": False},
        {"padding": True, "pad_to_multiple_of": 8, "return_special_tokens_mask": True},
    ):
        ours, peer = tok(SENTENCES, return_tensors="np", **options), fast(SENTENCES, return_tensors="np", **options)
        assert list(ours) == list(peer)
        for name in peer:
            np.testing.assert_array_equal(ours[name], peer[name])


def test_words_questions_and_windows(tok: wb.Tokenizer, fast: Any) -> None:
    words = ["Where", "is", "Bilbo", "Baggins", "?"]
    ours, peer = (one(words, is_split_into_words=True) for one in (tok, fast))
    assert ours.word_ids() == peer.word_ids()
    assert [ours.word_to_tokens(i) for i in range(5)] == [peer.word_to_tokens(i) for i in range(5)]
    question, context = "Who lives there?", " ".join(SENTENCES * 4)
    options: dict[str, Any] = {
        "max_length": 20,
        "truncation": "only_second",
        "stride": 4,
        "return_overflowing_tokens": True,
        "return_offsets_mapping": True,
        "padding": "max_length",
    }
    ours, peer = tok(question, context, **options), fast(question, context, **options)
    assert ours["input_ids"].tolist() == peer["input_ids"]
    assert ours["offset_mapping"].tolist() == [[list(pair) for pair in row] for row in peer["offset_mapping"]]
    assert ours["overflow_to_sample_mapping"].tolist() == peer["overflow_to_sample_mapping"]
    assert [ours.sequence_ids(i) for i in range(len(ours["input_ids"]))] == [
        peer.sequence_ids(i) for i in range(len(peer["input_ids"]))
    ]
    assert ours.char_to_token(0, 4, sequence_index=1) == peer.char_to_token(0, 4, sequence_index=1)


def test_tokens_are_added_and_the_folder_is_saved(tok: wb.Tokenizer, fast: Any, tmp_path: Path) -> None:
    more = tok.with_added_tokens(["<entity>", wb.AddedToken("new_tok", lstrip=True)])
    fast.save_pretrained(tmp_path / "theirs")
    transformers = pytest.importorskip("transformers")
    peer = transformers.BertTokenizerFast.from_pretrained(str(tmp_path / "theirs"))
    assert peer.add_tokens(["<entity>", transformers.AddedToken("new_tok", lstrip=True)]) == len(more) - len(tok)
    text = "the <entity> has a new_tok here"
    assert more(text)["input_ids"][0].tolist() == peer(text)["input_ids"]
    more.save_pretrained(tmp_path / "ours")
    again = transformers.BertTokenizerFast.from_pretrained(str(tmp_path / "ours"))
    assert again(text)["input_ids"] == peer(text)["input_ids"]


def test_padding_of_encoded_rows(tok: wb.Tokenizer, fast: Any) -> None:
    rows = [{"input_ids": tok.encode(text).ids} for text in SENTENCES]
    ours, peer = tok.pad(rows, return_tensors="np"), fast.pad(rows, return_tensors="np")
    np.testing.assert_array_equal(ours["input_ids"], peer["input_ids"])
    np.testing.assert_array_equal(ours["attention_mask"], peer["attention_mask"])


# --- the pages of sentence-transformers


def test_similarities_of_sentences(model: wb.SentenceEncoder) -> None:
    sentences = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    embeddings = model.encode(sentences)
    assert embeddings.shape == (3, 384)
    similarities = model.similarity(embeddings, embeddings)
    # sentence-transformers prints these numbers for these sentences.
    expected = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]
    np.testing.assert_allclose(similarities, expected, atol=5e-5)
    assert model.max_seq_length == 256
    assert model.similarity_fn_name == "cosine"
    assert model.get_sentence_embedding_dimension() == 384
    short = model.encode(sentences, truncate_dim=64, normalize_embeddings=True)
    assert short.shape == (3, 64)
    binary = quantize_embeddings(embeddings, precision="binary")
    np.testing.assert_array_equal(binary, model.encode(sentences, precision="binary"))
    assert binary.shape == (3, 48)


def test_queries_and_documents(model: wb.SentenceEncoder) -> None:
    query = model.encode_query("Which planet is known as the Red Planet?")
    documents = model.encode_document(["Venus is often called Earth's twin.", "Mars is known as the Red Planet."])
    assert int(model.similarity(query, documents).argmax()) == 1
    instructed = model.encode("Mars", prompt="Represent this sentence for searching relevant passages: ")
    np.testing.assert_array_equal(
        instructed, model.encode("Represent this sentence for searching relevant passages: Mars")
    )


def test_semantic_search(model: wb.SentenceEncoder) -> None:
    corpus = ["A man is eating food.", "A monkey is playing drums.", "A woman is playing violin."]
    vectors = model.encode(corpus, convert_to_tensor=False)
    hits = semantic_search(model.encode(["Someone is eating pasta."]), vectors, top_k=2)
    assert hits[0][0]["corpus_id"] == 0
    assert set(hits[0][0]) == {"corpus_id", "score"}
    assert len(hits[0]) == 2
    scores = model.similarity(model.encode("Someone is eating pasta."), vectors)[0]
    assert hits[0][0]["score"] == pytest.approx(float(scores.max()), abs=1e-6)


def test_paraphrases(model: wb.SentenceEncoder) -> None:
    sentences = [
        "The cat sits outside",
        "A man plays guitar",
        "I love pasta",
        "The cat plays outside",
        "Do you like pizza?",
    ]
    paraphrases = paraphrase_mining(model, sentences)
    score, i, j = paraphrases[0]
    assert {i, j} == {0, 3}
    assert 0.5 < score < 1


def test_a_cross_encoder_ranks(tmp_path: Path) -> None:
    cross = wb.CrossEncoder(make_ranker(tmp_path / "ranker"))
    query, passages = "wonderful film", ["dull film", "great film", "bread"]
    scores = cross.predict([(query, passage) for passage in passages])
    assert scores.shape == (3,)
    ranks = cross.rank(query, passages, return_documents=True)
    assert [rank["text"] for rank in ranks] == [passages[rank["corpus_id"]] for rank in ranks]
    assert [rank["score"] for rank in ranks] == sorted(scores.tolist(), reverse=True)


def test_what_is_refused_says_why(model: wb.SentenceEncoder) -> None:
    with pytest.raises(InputError, match="cpu"):
        model.encode(SENTENCES, device="cuda")
    with pytest.raises(InputError, match="no prompt 'classification'"):
        model.encode(SENTENCES, prompt_name="classification")

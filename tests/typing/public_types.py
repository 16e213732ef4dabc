"""What a type checker sees of the public interface. mypy checks this file; `make lint` runs it, and nothing imports it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import wordpiece_bert as wb
from wordpiece_bert import pretraining, sentence, tasks
from wordpiece_bert.bert import BertForSequenceClassification, BertOutput, HeadOutput
from wordpiece_bert.corpus import EncodeSummary
from wordpiece_bert.tasks import Answer, Answers, Entity, FilledMask, Label

Integers = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float32]


def of_a_tokenizer(tok: wb.Tokenizer) -> None:
    inputs = tok(["a", "b"], padding=True)
    assert_type(inputs, wb.BatchEncoding)
    assert_type(inputs["input_ids"], Integers)
    assert_type(inputs.attention_mask, Integers)
    assert_type(inputs[0], wb.Encoding)
    assert_type(inputs[0:1], list[wb.Encoding])
    assert_type(tok("a", dtype="int32", return_length=True)["length"], Integers)
    assert_type(tok("a", return_tensors=None), wb.BatchEncoding[Any])
    assert_type(tok.pad([{"input_ids": [1]}])["input_ids"], Any)
    assert_type(tok.encode("a", "b", False, True, max_length=4), wb.Encoding)
    assert_type(tok.encode_ids("a"), npt.NDArray[np.uint32])
    batch = tok.encode_batch(["a"], return_offsets=True)
    assert_type(batch, wb.RaggedBatch)
    assert_type(batch[0], npt.NDArray[np.uint32])
    assert_type(batch[0:1], wb.RaggedBatch)
    assert_type(tok.encodings(["a"]), list[wb.Encoding])
    assert_type(tok.encode_files("a.txt", "a.npy"), EncodeSummary)
    assert_type(tok.convert_tokens_to_ids(["a"]), list[int])
    tok.encode("a", padding="longest")
    tok.encode("a", max_lenght=4)  # type: ignore[arg-type]
    tok.encode("a", padding="max")  # type: ignore[arg-type]


def of_models(tok: wb.Tokenizer, model: wb.BertModel, classifier: BertForSequenceClassification) -> None:
    output = model(**tok("a"))
    assert_type(output, BertOutput)
    assert_type(output.last_hidden_state, Floats)
    assert_type(classifier(**tok("a")), HeadOutput)
    assert_type(classifier(**tok("a")).logits, Floats)


def of_tasks(source: tasks.Loaded) -> None:
    labels = tasks.classify(source, "a")
    assert_type(labels, Answers[Label])
    assert_type(labels[0]["score"], float)
    assert_type(labels.truncated, bool)
    assert_type(tasks.classify(source, ["a", ("a", "b")]), list[Answers[Label]])
    assert_type(tasks.ner(source, "a"), Answers[Entity])
    assert_type(tasks.ner(source, ["a"])[0][0]["start"], int)
    assert_type(tasks.fill_mask(source, "a"), Answers[FilledMask | Any])
    answer = tasks.question_answering(source, "a", "b")
    assert_type(answer, Answer)
    assert_type(answer["score"], float)
    assert_type(answer["answer"], str)
    assert_type(tasks.question_answering(source, "a", "b", top_k=2), Answers[Answer] | Any)
    assert_type(tasks.feature_extraction(source, "a"), sentence.TokenVectors)
    assert_type(tasks.feature_extraction(source, ["a"])[0].vectors, Floats)
    tasks.classify(source, "a", topk=2)  # type: ignore[call-overload]


async def of_a_loop(encoder: wb.SentenceEncoder) -> None:
    assert_type(await encoder.aencode(["a"]), npt.NDArray[Any])
    await encoder.aencode("a", batchsize=8)  # type: ignore[call-overload]


def of_sentences(encoder: wb.SentenceEncoder, ranker: wb.CrossEncoder) -> None:
    vectors = encoder.encode(["a"])
    assert_type(vectors, npt.NDArray[Any])
    assert_type(encoder.encode_query("a"), npt.NDArray[Any])
    assert_type(encoder.encode_document(["a"], batch_size=8), npt.NDArray[Any])
    assert_type(encoder.encode_query(["a"], return_truncated=True), tuple[npt.NDArray[Any], npt.NDArray[np.bool_]])
    assert_type(wb.SentenceEncoder.from_pretrained("a", "rust", "auto", threads=2), wb.SentenceEncoder)
    wb.SentenceEncoder.from_pretrained("a", thread=2)  # type: ignore[call-arg]
    wb.CrossEncoder("a", thread=2)  # type: ignore[call-arg]
    sentence.StaticEncoder("a", backend="rust")  # type: ignore[call-arg]
    assert_type(encoder.encode(["a"], return_truncated=True), tuple[npt.NDArray[Any], npt.NDArray[np.bool_]])
    assert_type(encoder.encode_tokens("a").vectors, Floats)
    assert_type(encoder.similarity(vectors, vectors), Floats)
    hits = sentence.semantic_search(vectors, vectors)
    assert_type(hits, list[list[sentence.SearchHit]])
    assert_type(hits[0][0]["corpus_id"], int)
    assert_type(ranker.rank("a", ["b"])[0]["corpus_id"], int)
    encoder.encode_query("a", batchsize=8)  # type: ignore[call-overload]


def of_training(tok: wb.Tokenizer) -> None:
    counts = wb.WordCounts.from_files([Path("a.txt")], lowercase=False)
    assert_type(counts, wb.WordCounts)
    vocab = wb.train_vocab(counts, 100, algorithm="top_down", slack_ratio=0.1)
    assert_type(vocab, wb.Vocab)
    assert_type(vocab.tokenizer(unk_token="<unk>"), wb.Tokenizer)
    assert_type(pretraining.Masking(tok), pretraining.Masking)
    wb.train_vocab(counts, 100, min_freqency=2)  # type: ignore[call-arg]

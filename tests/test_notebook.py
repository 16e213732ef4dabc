"""What results show of themselves: `repr`, and tables in a notebook, which are bounded, escaped and without scripts."""

from __future__ import annotations

import json
import pickle
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_bert as wb
from small_tokenizer import tokenizer
from wordpiece_bert import inspect, sentence, tasks
from wordpiece_bert._internal import notebook
from wordpiece_bert._internal.answers import Answer, Answers, Results
from wordpiece_bert.bert.outputs import BertOutput, HeadOutput
from wordpiece_bert.training import vocab_contents

WILD = "</td></table><script>alert('x')</script><img src=x onerror=alert(1)>&amp;\"'"
#: A table shows at most a hundred rows; more than this is not bounded.
LARGEST = 200_000


class Page(HTMLParser):
    """The tags, attributes and cells of a piece of HTML; every tag must be closed."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.open: list[str] = []
        self.cells: list[str] = []
        self.attributes: list[str] = []
        self.feed(content)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def table_of(value: Any) -> list[str]:
    """The cells of the table that a value shows, which has nothing but a table."""
    content = value._repr_html_()
    assert len(content) < LARGEST
    page = Page(content)
    assert set(page.tags) <= {"p", "table", "thead", "tbody", "tr", "th", "td"}
    assert not page.attributes
    return page.cells


def test_search_results_are_lists_that_show_themselves() -> None:
    vectors = np.eye(3, dtype=np.float32)
    hits = sentence.semantic_search(vectors[:2], vectors, top_k=2)
    plain = [
        [{"corpus_id": 0, "score": 1.0}, {"corpus_id": 1, "score": 0.0}],
        [{"corpus_id": 1, "score": 1.0}, {"corpus_id": 0, "score": 0.0}],
    ]
    assert hits == plain
    assert json.loads(json.dumps(hits)) == plain
    assert pickle.loads(pickle.dumps(hits)) == plain
    assert table_of(hits) == ["of", "corpus_id", "score", *("0", "0", "1", "0", "1", "0", "1", "1", "1", "1", "0", "0")]
    assert table_of(hits[0]) == ["corpus_id", "score", "0", "1", "1", "0"]
    pairs = sentence.paraphrase_mining_embeddings(vectors)
    assert isinstance(pairs, list)
    assert len(table_of(pairs)) == 3 * 4
    assert table_of(sentence.paraphrase_mining_embeddings(vectors[:1])) == []


def test_many_results_are_not_all_shown() -> None:
    vectors = np.eye(200, dtype=np.float32)
    hits = sentence.semantic_search(vectors, vectors, top_k=100)
    assert len(table_of(hits)) == 3 * (notebook.RECORDS + 1)
    assert f"the first {notebook.RECORDS}" in hits._repr_html_()  # type: ignore[attr-defined]


def test_results_of_tasks_show_themselves(models: Path) -> None:
    labels = tasks.classify(str(models / "reviews"), "A wonderful film!", top_k=None)
    assert table_of(labels)[:3] == ["label", "score", "positive"]
    assert table_of(tasks.classify(str(models / "reviews"), ["a film", "dull"]))[:2] == ["of", "label"]
    filled = tasks.fill_mask(str(models / "words"), "[MASK] [MASK] is in Poland.", top_k=2)
    assert table_of(filled)[:2] == ["of", "score"]
    several = tasks.fill_mask(str(models / "words"), ["[MASK] [MASK]", "a [MASK]"], top_k=1)
    assert {"0.0", "0.1", "1"} <= set(table_of(several))
    answer = tasks.question_answering(
        str(models / "answers"), "Where was Alan Turing born?", "Alan was born in London."
    )
    assert table_of(answer)[-2:] == ["answer", answer["answer"]]
    features = tasks.feature_extraction(str(models / "sentences"), "to bake bread")
    assert "[CLS]" in table_of(features)
    assert repr(features).startswith("TokenVectors(5 tokens, vectors float32 [5, ")
    ranked = wb.CrossEncoder.from_pretrained(models / "ranker").rank("bread", ["oven", WILD], return_documents=True)
    assert WILD in table_of(ranked)


def test_outputs_of_models_name_their_arrays() -> None:
    states = tuple(np.full((2, 600, 8), 1 / 3, np.float32) for _ in range(3))
    output = BertOutput(last_hidden_state=states[-1], hidden_states=states)
    assert repr(output) == "BertOutput(hidden_states 3 × float32 [2, 600, 8], last_hidden_state float32 [2, 600, 8])"
    assert table_of(output)[4:] == [
        *("hidden_states", "tuple", "", "3 of these: 2 × 600 × 8"),
        *("last_hidden_state", "2 × 600 × 8", "float32", " ".join(["0.3333"] * 8)),
    ]
    with_loss = HeadOutput(logits=np.zeros((1, 2), np.float32), loss=np.float32(0.25))
    assert repr(with_loss) == "HeadOutput(logits float32 [1, 2], loss 0.25)"
    assert table_of(with_loss)[-4:] == ["loss", "scalar", "float32", "0.25"]


def test_vectors_of_tokens_are_short_however_long_the_text_is(models: Path) -> None:
    vectors = sentence.TokenVectors(np.zeros((3000, 4), np.float32), [(0, 1)] * 3000, [WILD] * 3000, True)
    assert repr(vectors) == "TokenVectors(3000 tokens, vectors float32 [3000, 4], truncated)"
    assert len(table_of(vectors)) == 4 * (notebook.TOKENS + 1)
    trace = inspect.trace(str(models / "words"), "paris is in france")
    assert "attentions" in table_of(trace)


def test_reports_show_themselves(tmp_path: Path) -> None:
    tok = tokenizer()
    report = wb.vocab_report(tok, ["a text"], name=WILD)
    assert "fertility" in repr(report)
    assert len(repr(report)) < 400
    assert table_of(report)
    counts = wb.WordCounts.from_texts([" ".join(f"w{i}" for i in range(300)), "<b>"])
    assert table_of(counts)[:2] == ["word", "count"]
    assert len(table_of(counts)) == 2 * (notebook.RECORDS + 1)
    vocab = wb.train_vocab(["abc"] * 4, 10)
    assert table_of(vocab)[:6] == ["id", "token", "uses", "0", "[PAD]", "0"]
    assert table_of(vocab_contents(vocab.tokens, vocab.special_tokens))
    (tmp_path / "t.txt").write_text("a text\n")
    summary = tok.encode_files(tmp_path / "t.txt", tmp_path / "t.npy")
    assert table_of(summary)[2] == "output"
    assert "t.npy" in table_of(summary)[3]


def test_encodings_and_batches_with_wild_texts() -> None:
    tok = tokenizer().with_added_tokens([WILD, "x" * 5000])
    encoding = tok.encode(WILD + "x" * 5000)
    assert WILD in table_of(encoding)
    assert max(map(len, table_of(encoding))) <= notebook.CHARACTERS
    assert table_of(tok.encode_batch([WILD] * 100))
    inputs = tok(["a", "b"])
    inputs["note"] = WILD
    inputs["number"] = 5
    inputs["nothing"] = []
    inputs["texts"] = [WILD, "a"]
    assert WILD in table_of(inputs)
    assert table_of(wb.BatchEncoding()) == ["name", "shape", "dtype", "begins with"]


texts = st.text(max_size=300) | st.just(WILD)
scalars = texts | st.integers() | st.floats() | st.booleans() | st.none()
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3))


@given(st.lists(st.dictionaries(texts, values, max_size=4) | st.lists(values, max_size=3), max_size=60))
def test_any_results_make_a_table(items: list[Any]) -> None:
    results = Results(items)
    table_of(results)
    table_of(Answers(items, truncated=True))
    assert results == items
    assert repr(results) == repr(items)
    for item in items:
        if isinstance(item, dict):
            table_of(Answer(item))
            assert Answer(item) == item


def test_pictures_of_attention_are_bounded_and_have_no_scripts() -> None:
    weights = np.full((12, 12, 512, 512), 1 / 512, np.float32)
    shown = inspect.attention(weights, ["<script>"] * 512)._repr_html_()
    assert "<script" not in shown
    assert len(shown) < 1_000_000

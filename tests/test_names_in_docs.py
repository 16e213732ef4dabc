"""Names in single backticks of the documentation: which are known (docs/_extensions/default_role.py)."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="Sphinx is not installed: make docs")

sys.path.insert(0, str(Path(__file__).parent.parent / "docs" / "_extensions"))

from default_role import FOREIGN, is_known, page_of
from inventories import write_inventories

MODULE = "wordpiece_bert"


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("max_length", "Tokenizer.__call__"),  # a parameter
        ("Tokenizer", "Tokenizer.encode"),  # an object of the module
        ("encode_batch", "Tokenizer.encode"),  # another method of the class
        ("Tokenizer.encode_batch", "train_vocab"),
        ("wordpiece_bert.bert.functional.gelu", "BertModel"),
        ("hidden_size", "bert.BertConfig"),  # a field with a default
        ("output_dir", "finetune.TrainingArguments"),  # and one without
        ("base_model", "bert.heads.base.HeadModel"),  # an attribute that the docstring describes
        ("output_path", "evaluation.TripletEvaluator"),  # a parameter of the call of its objects
    ],
)
def test_names_that_are_known(name: str, place: str) -> None:
    assert is_known(name, f"{MODULE}.{place}", MODULE)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("max_lenght", "Tokenizer.__call__"),
        ("encode_batches", "Tokenizer.encode"),
        ("Tokenizer.encode_batches", "train_vocab"),
        ("wordpiece_bert.bert.functional.gelo", "BertModel"),
        ("hidden_sizes", "bert.BertConfig"),
        ("TokenizerS", "Tokenizer.encode"),
        ("threads=", "set_num_threads"),
    ],
)
def test_misspelled_names_are_not(name: str, place: str) -> None:
    assert not is_known(name, f"{MODULE}.{place}", MODULE)


def test_a_class_of_another_module_is_found_where_it_is_documented() -> None:
    pages = ["wordpiece_bert.bert.BertConfig", "wordpiece_bert.finetune.cached_vectors", "wordpiece_bert.Tokenizer"]
    objects = dict.fromkeys(pages)
    assert page_of("BertConfig", "wordpiece_bert.finetune", objects) == pages[0]
    assert page_of("BertConfig.hidden_size", "wordpiece_bert.finetune", objects) == pages[0]
    assert page_of("BertConfig.hidden_sizes", "wordpiece_bert.finetune", objects) is None
    assert page_of("finetune.cached_vectors", "wordpiece_bert.tasks", objects) == pages[1]
    assert page_of("cached_vectors", "wordpiece_bert.tasks", objects) is None  # words could have such names


def test_foreign_names_are_listed_in_order() -> None:
    lines = FOREIGN.read_text(encoding="utf-8").splitlines()
    assert lines == sorted(set(lines))


def test_the_name_stands_everywhere_in_an_address(tmp_path: Path) -> None:
    (tmp_path / "peer.txt").write_text("https://peer.example/\npeer.Name py:class pages/$.html#$\n")
    _, inventory = write_inventories(tmp_path, tmp_path / "made")["peer"]
    content = Path(inventory).read_bytes().partition(b"zlib.\n")[2]
    assert zlib.decompress(content) == b"peer.Name py:class 1 pages/peer.Name.html#peer.Name -\n"

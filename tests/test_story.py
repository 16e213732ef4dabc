"""The whole way, with the commands that a page prints: text files, vocabulary, pre-training data, a small BERT, which
is fine-tuned, searched and served. Everything is small, so that it takes seconds."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import train_a_bert

import wordpiece_bert as wb
from wordpiece_bert.bert import BertForPreTraining
from wordpiece_bert.tasks import classify

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "a-bert-of-your-own.md"


def printed_commands() -> list[str]:
    """The commands of the page, without the first and the last, which write the texts and serve."""
    [block] = re.findall(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [line for line in block.replace("\\\n    ", "").splitlines() if line]


def test_the_page_prints_the_commands_of_the_example() -> None:
    made, *commands, served = printed_commands()
    assert made == "python examples/train_a_bert.py --make-texts story/"
    assert commands == train_a_bert.steps(Path("story"), quick=False)
    assert served == "wordpiece-bert serve story/encoder --port 8000"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The folder after all commands, and what each of them has printed."""
    folder = tmp_path_factory.mktemp("story")
    train_a_bert.write_texts(folder, documents=200, labelled=32)
    printed = {}
    for command in train_a_bert.steps(folder, quick=True):
        program, *arguments = shlex.split(command)
        assert program == "wordpiece-bert"
        done = subprocess.run(
            [sys.executable, "-m", "wordpiece_bert", *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        printed[" ".join(arguments[:1] + re.findall(r"--task (\w+)", command))] = done.stdout + done.stderr
    return folder, printed


def test_every_step_leaves_what_the_next_one_needs(story: tuple[Path, dict[str, str]]) -> None:
    folder, printed = story
    assert list(printed) == ["train", "pretrain-data", "pretrain", "finetune classify", "finetune similar", "search"]
    assert (
        len(wb.Tokenizer.from_vocab(folder / "vocab.txt"))
        == BertForPreTraining.from_pretrained(folder / "bert").config.vocab_size
    )
    assert "held out: perplexity" in printed["pretrain"]
    for name in ("bert", "classifier", "encoder"):
        assert (folder / name / "training_curve.svg").read_text().startswith("<svg")
    found = classify(folder / "classifier", "The red kettle steams on the stove.")
    assert found[0]["label"] in train_a_bert.TOPICS
    assert len([line for line in printed["search"].splitlines() if "The " in line]) == 3


def test_the_result_is_served(story: tuple[Path, dict[str, str]]) -> None:
    pytest.importorskip("uvicorn")
    folder, _ = story
    encoder = wb.SentenceEncoder(folder / "encoder")
    texts = ["The fern grows.", "The tulip blooms."]
    with train_a_bert.served(folder / "encoder") as address:
        found: Any = train_a_bert.request(address, texts)
    np.testing.assert_allclose(found, encoder.encode(texts), atol=1e-5)


def test_made_up_texts_keep_labelled_and_held_out_words_apart(tmp_path: Path) -> None:
    train_a_bert.write_texts(tmp_path, documents=5, labelled=200)
    shared = set(train_a_bert.ADJECTIVES) | {"the", "label", "text", *train_a_bert.TOPICS}
    shared |= {word for _, _, places in train_a_bert.TOPICS.values() for place in places for word in place.split()}
    seen, held = (
        set(re.findall(r"\w+", (tmp_path / f"{name}.tsv").read_text().lower())) - shared
        for name in ("labelled", "held-out")
    )
    assert seen
    assert held
    assert not seen & held

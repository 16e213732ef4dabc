"""Trains once, in a fresh process, and prints the time and the tokens as JSON.

The request is the only argument, a JSON object: ``engine``, ``work``, ``file`` (texts, or words and counts as TSV),
``algorithm``, ``vocab_size``, ``options``, ``threads``, ``cores``, and in ``pinned`` the first tokens for tokenizers, whose
own order of characters is random.
"""

# Arguments and results differ between engines, so they have no common types.

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import distribution
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

LEARNER = "tensorflow_text/tools/wordpiece_vocab/wordpiece_tokenizer_learner_lib.py"

#: A version, and what is timed: it gives the tokens, or of counts the number of words.
Ready = tuple[str, "Callable[[], list[str]]"]


def ours(request: dict[str, Any]) -> Ready:
    import wordpiece_bert as wb

    # Warnings about sizes and rare characters are irrelevant here.
    warnings.simplefilter("ignore")
    file, threads = request["file"], request["threads"]

    def learn(source: Any) -> list[str]:
        options = request["options"]
        algorithm = request["algorithm"]
        return wb.train_vocab(source, request["vocab_size"], algorithm=algorithm, threads=threads, **options).tokens

    if request["work"] == "counts":
        counts = wb.WordCounts.load(file)
        return wb.__version__, lambda: learn(counts)
    if request["work"] == "count":
        return wb.__version__, lambda: [str(len(wb.WordCounts.from_files(file, threads=threads)))]
    return wb.__version__, lambda: learn(Path(file))


def tokenizers(request: dict[str, Any]) -> Ready:
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(lowercase=True)
    pinned = {"special_tokens": request["pinned"], "limit_alphabet": 0} if request["pinned"] else {}

    def run() -> list[str]:
        tokenizer.train(
            request["file"], vocab_size=request["vocab_size"], show_progress=False, **request["options"], **pinned
        )
        vocab = tokenizer.get_vocab()
        return sorted(vocab, key=vocab.__getitem__)

    return version_of("tokenizers"), run


def tensorflow_text(request: dict[str, Any]) -> Ready:
    # The learner itself needs only Python and NumPy; importing its package would need TensorFlow.
    path = distribution("tensorflow-text").locate_file(LEARNER)
    spec = importlib.util.spec_from_file_location("learner", str(path))
    assert spec is not None
    assert spec.loader is not None
    learner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(learner)
    rows = (line.split("\t") for line in Path(request["file"]).read_bytes().decode("utf-8").split("\n"))
    counts = sorted((row[0], int(row[1])) for row in rows if len(row) == 2)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return (
        version_of("tensorflow-text"),
        lambda: learner.learn(counts, request["vocab_size"], special, **request["options"]),
    )


ENGINES = {"ours": ours, "tokenizers": tokenizers, "tensorflow-text": tensorflow_text}


def peak() -> int:
    """Return the peak memory of this process in bytes, imports included."""
    if sys.platform == "linux":
        # The value of getrusage starts with the memory of the parent at the time of the fork.
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    request = json.loads(sys.argv[1])
    if request["cores"]:
        os.sched_setaffinity(0, request["cores"])
    try:
        version, run = ENGINES[request["engine"]](request)
    except ImportError as error:
        print(json.dumps({"missing": str(error)}))
        return
    start = time.perf_counter()
    tokens = run()
    seconds = time.perf_counter() - start
    answer = {
        "version": version,
        "seconds": seconds,
        "peak": peak(),
        "tokens": len(tokens),
        "digest": hashlib.sha256("\n".join(tokens).encode()).hexdigest(),
    }
    if request.get("all"):
        answer["all"] = tokens
    print(json.dumps(answer))


if __name__ == "__main__":
    main()

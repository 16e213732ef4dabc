"""Train a small BERT from text files to a search engine, every step one command of ``wordpiece-bert``.

The first line writes made-up texts about four topics, the second one goes all the way with few steps of training.
Without ``--quick`` it takes some minutes on two cores. The server needs the extra ``serve``; without it, that step is
left out.

    python examples/train_a_bert.py --make-texts story/
    python examples/train_a_bert.py story/ --quick
"""

import argparse
import importlib.util
import json
import math
import random
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ADJECTIVES = ["red", "small", "old", "quiet", "bright", "strange", "heavy", "plain"]
#: Nouns, verbs and places of each topic. Labelled texts have the first half of each list, held-out ones the second.
TOPICS = {
    "garden": (
        ["rose", "hedge", "tulip", "fern", "orchard", "ivy", "lawn", "pumpkin"],
        ["blooms", "grows", "withers", "spreads"],
        ["in the shade", "along the wall", "beside the well", "after the rain"],
    ),
    "harbour": (
        ["ferry", "anchor", "sail", "trawler", "buoy", "net", "lighthouse", "gull"],
        ["drifts", "turns", "rocks", "returns"],
        ["at low tide", "off the coast", "near the pier", "before the storm"],
    ),
    "kitchen": (
        ["kettle", "oven", "ladle", "dough", "skillet", "broth", "whisk", "pantry"],
        ["simmers", "steams", "cools", "boils"],
        ["on the stove", "under a lid", "with some salt", "until supper"],
    ),
    "observatory": (
        ["comet", "mirror", "planet", "dome", "nebula", "lens", "satellite", "eclipse"],
        ["glows", "rises", "fades", "rotates"],
        ["above the horizon", "past midnight", "in a clear sky", "through the telescope"],
    ),
}


def sentence(topic: str, rng: random.Random, half: int | None = None) -> str:
    """Make a sentence about a topic, of all its words or of the words of one half."""
    nouns, verbs, places = (
        words if half is None else words[half * len(words) // 2 : (half + 1) * len(words) // 2]
        for words in TOPICS[topic]
    )
    return f"The {rng.choice(ADJECTIVES)} {rng.choice(nouns)} {rng.choice(verbs)} {rng.choice(places)}."


def write_texts(folder: Path, documents: int = 3000, labelled: int = 64) -> None:
    """Write documents of one topic each, some sentences of them, and labelled sentences and pairs of sentences."""
    rng = random.Random(0)  # noqa: S311 (the same texts every time)
    folder.mkdir(parents=True, exist_ok=True)
    topics = list(TOPICS)
    texts = []
    for _ in range(documents):
        topic = rng.choice(topics)
        texts.append("\n".join(sentence(topic, rng) for _ in range(rng.randrange(4, 10))))
    (folder / "texts.txt").write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    distinct = sorted({line for text in texts[:100] for line in text.splitlines()})
    (folder / "sentences.txt").write_text("\n".join(distinct) + "\n", encoding="utf-8")
    for half, name, count in ((0, "labelled", labelled), (1, "held-out", 400)):
        rows = [f"{topic}\t{sentence(topic, rng, half)}" for topic in rng.choices(topics, k=count)]
        (folder / f"{name}.tsv").write_text("\n".join(["label\ttext", *rows]) + "\n", encoding="utf-8")
        pairs = []
        for number in range(2 * count):
            a, b = rng.sample(topics, 2)
            b = a if number % 2 else b
            pairs.append(f"{number % 2}\t{sentence(a, rng, half)}\t{sentence(b, rng, half)}")
        (folder / f"{name}-pairs.tsv").write_text("\n".join(["label\ttext\tother", *pairs]) + "\n", encoding="utf-8")


def steps(folder: Path, *, quick: bool) -> list[str]:
    """Return the command of each step."""
    texts, vocab, rows, bert = (folder / name for name in ("texts.txt", "vocab.txt", "rows", "bert"))
    sentences, encoder = folder / "sentences.txt", folder / "encoder"
    number, evaluated = (40, 20) if quick else (1000, 100)
    labels = f"--train {folder}/labelled.tsv --eval {folder}/held-out.tsv"
    pairs = f"--train {folder}/labelled-pairs.tsv --eval {folder}/held-out-pairs.tsv --pair other"
    epochs = "--epochs 1" if quick else "--epochs 20 --learning-rate 1e-3"
    return [
        f"wordpiece-bert train {texts} -o {vocab} --vocab-size 400",
        f"wordpiece-bert pretrain-data {texts} -o {rows} -v {vocab} --max-length 48 --dupe-factor 2",
        f"wordpiece-bert pretrain {rows} -o {bert} -v {vocab} --hidden-size 64 --max-steps {number} "
        f"--eval-steps {evaluated} --learning-rate 4e-3",
        f"wordpiece-bert finetune -m {bert} --task classify {labels} {epochs} -o {folder}/classifier",
        f"wordpiece-bert finetune -m {bert} --task similar {pairs} {epochs} -o {encoder}",
        f'wordpiece-bert search {sentences} -m {encoder} --query "a fern near some tulips" -k 3',
    ]


def run(command: str) -> None:
    """Run a command, which is printed first."""
    print(f"$ {command}", flush=True)
    program, *arguments = shlex.split(command)
    assert program == "wordpiece-bert"
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "wordpiece_bert", *arguments], check=False)  # noqa: S603
    if done.returncode:
        message = f"{command}: ended with code {done.returncode}"
        raise ValueError(message)
    print(f"  {time.perf_counter() - start:.0f} s\n", flush=True)


@contextmanager
def served(model: Path) -> Iterator[str]:
    """Serve a model on a free port; give its address."""
    command = [sys.executable, "-m", "wordpiece_bert", "serve", f"story={model}", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: S603
    try:
        for line in process.stderr or ():
            if "http://" in line:
                yield "http://" + line.split("http://")[1].split()[0].rstrip("/.,;")
                break
        else:
            message = f"the server of {model} has ended"
            raise ValueError(message)
    finally:
        process.terminate()
        process.communicate()


def request(address: str, texts: list[str]) -> list[list[float]]:
    """Return the vectors of texts from a server."""
    body = json.dumps({"model": "story", "input": texts}).encode()
    asked = urllib.request.Request(f"{address}/v1/embeddings", body, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(asked, timeout=60) as answer:  # noqa: S310 (the server of this program)
        return [row["embedding"] for row in json.load(answer)["data"]]


def cosine(x: list[float], y: list[float]) -> float:
    """Return the cosine of two vectors."""
    return sum(a * b for a, b in zip(x, y, strict=True)) / (math.hypot(*x) * math.hypot(*y))


def main() -> None:
    """Write the texts, or go all the way."""
    parser = argparse.ArgumentParser(description="Train a small BERT, from text files to search.")
    parser.add_argument("folder", type=Path, help="the folder of texts.txt and of all results")
    parser.add_argument("--make-texts", action="store_true", help="write made-up texts into the folder, and stop")
    parser.add_argument("--quick", action="store_true", help="few steps of training: seconds instead of minutes")
    options = parser.parse_args()
    if options.make_texts:
        write_texts(options.folder, *((300, 32) if options.quick else ()))
        return
    (options.folder / "texts.txt").open("rb").close()  # so that a missing file is one sentence
    for command in steps(options.folder, quick=options.quick):
        is_training = command.split()[1] in ("pretrain", "finetune")
        run(f"{command} --overwrite" if is_training else command)  # so that the program can be run twice
    if importlib.util.find_spec("uvicorn") is None:
        print("no server: pip install 'wordpiece-bert[serve]'")
        return
    with served(options.folder / "encoder") as address:
        vectors = request(address, ["The fern grows.", "The tulip blooms.", "The kettle steams."])
        near, far = (cosine(vectors[0], other) for other in vectors[1:])
        print(f"served at {address}: garden and garden {near:.2f}, garden and kitchen {far:.2f}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # a missing file, a step that failed: a sentence
        sys.exit(f"error: {error}")

"""Draw the pictures of `docs/gallery.md`, pack its live pages, which `make docs` writes, and link each picture's state.

    python docs/images/make_gallery.py MODELS [--train TEXTS]

MODELS is a folder with two models, `words` and `reviews`, and a vocabulary, `films`. With --train they are made there
first, by this package's own commands, the models from MiniLM: `words` guesses masked words, and learns from TEXTS, a
UTF-8 file of paragraphs, one a line; `reviews` tells praise from blame, and learns from 8,373 snippets of film reviews
that people have rated, in the source archive of vaderSentiment on PyPI (Hutto and Gilbert 2014; MIT licence), which pip
downloads. `films` is trained on the same snippets.
"""

import argparse
import html
import json
import random
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

import wordpiece_bert as wb
from wordpiece_bert import inspect, tasks
from wordpiece_bert.cli import main as command

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FOLDER = HERE / "gallery"
ANIMAL = "The animal didn't cross the street because it was too tired"
WIDE = "The animal didn't cross the street because it was too wide"
THINK = "I think, therefore I am"
SENTENCES = [
    ANIMAL,
    "The dog was exhausted and stayed on its side of the road",
    "I think, therefore I am",
    "Doubting proves that there is someone who doubts",
    "The bank raised its interest rates",
    "We sat on the bank of the river",
]
BLANK = "He was born in [MASK] and died in 1950 ."
REVIEW = "A wonderful cast cannot save this dull and predictable story"
PRAISE = "A wonderful cast brightens this warm and surprising story"
FILMS = "An unfunny melodrama with a heartwarming screenplay, filmed in Mesopotamia by an archaeologist"

VADER = "vaderSentiment==3.3.2"
RATED = "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt"
#: Snippets that people rated between these are neither praise nor blame.
CLEAR = 1.0
HELD_OUT = 800

#: The pictures show one state of `words`: a third of the way it knows what kind of word is missing, and seldom which.
WORDS = "words/checkpoints/checkpoint-200"


def run(line: str, **names: object) -> None:
    """Run one command of this package."""
    print("$ wordpiece-bert", line.format(**names), flush=True)
    if command(shlex.split(line.format(**names))):
        sys.exit(1)


def rated_snippets(folder: Path) -> list[tuple[str, str]]:
    """Download the rated film reviews; returns texts with the label praise or blame, in a random order."""
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-binary",
        ":all:",
        "--dest",
        folder,
        VADER,
    ]
    subprocess.run(pip, check=True)  # noqa: S603 - no word of it is from outside
    with tarfile.open(next(folder.glob("*.tar.gz"))) as outer:
        inside = next(member for member in outer if member.name.endswith("hutto_ICWSM_2014.tar.gz"))
        with tarfile.open(fileobj=outer.extractfile(inside)) as archive:
            content = archive.extractfile(RATED)
            lines = content.read().decode("utf-8").splitlines() if content else []
    rated = [(text.strip(), float(rating)) for _, rating, text in (line.split("\t", 2) for line in lines)]
    labelled = [(text, "praise" if rating > 0 else "blame") for text, rating in rated if abs(rating) >= CLEAR]
    random.Random(0).shuffle(labelled)  # noqa: S311
    return labelled


def train(models: Path, texts: Path) -> None:
    """Make the models and the vocabulary."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        labelled = rated_snippets(folder)
        for table, rows in (("train", labelled[:-HELD_OUT]), ("held-out", labelled[-HELD_OUT:])):
            lines = ["text\tlabel", *("\t".join(row) for row in rows)]
            (folder / f"{table}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        run(
            "finetune -m minilm --task classify --train {folder}/train.tsv --eval {folder}/held-out.tsv "
            "--max-length 48 --epochs 1 --batch-size 32 --learning-rate 2e-4 --freeze embeddings --bf16 "
            "-o {models}/reviews",
            folder=folder,
            models=models,
        )
        run(
            "train {folder}/train.tsv --text-column text --vocab-size 8000 -o {models}/films",
            folder=folder,
            models=models,
        )
        run(
            "pretrain-data {texts} -o {folder}/rows -v minilm --documents line --sentences split "
            "--objective doc-sentences --max-length 64",
            texts=texts,
            folder=folder,
        )
        run(
            "pretrain {folder}/rows -v minilm -m minilm --max-steps 600 --warmup 30 --learning-rate 5e-4 --eval-share "
            "0.002 --bf16 -o {models}/words",
            folder=folder,
            models=models,
        )


def largest(numbers: np.typing.NDArray[np.float32]) -> tuple[int, int]:
    """Return the layer and the head of the largest of numbers [layers, heads]."""
    layer, head = np.unravel_index(int(numbers.argmax()), numbers.shape)
    return int(layer), int(head)


def strongest(trace: inspect.Trace, query: int, key: int) -> tuple[int, int]:
    """Return the layer and the head in which one token looks most at another."""
    return largest(trace.attentions[:, :, query, key])


@dataclass(frozen=True)
class Shown:
    """A view that has a picture, and the selection that opens the picture's state."""

    view: inspect.View
    selection: dict[str, int] = field(default_factory=dict)


def inside_views() -> dict[str, Shown]:
    """Return views of MiniLM by the names of their pictures."""
    encoder = wb.SentenceEncoder.from_pretrained("minilm")
    minilm = tasks.load("minilm")
    trace = inspect.trace(minilm, ANIMAL)
    it, animal = trace.tokens.index("it"), trace.tokens.index("animal")
    layer, head = strongest(trace, it, animal)
    pair = inspect.trace(minilm, ANIMAL, THINK)
    of_head = {"layer": layer, "head": head, "token": it}
    return {
        "tokens": Shown(
            inspect.tokens(minilm.tokenizer, "Unaffordable cafés, naïvely!", max_length=32, title="Tokens")
        ),
        "head": Shown(inspect.attention(trace, layer=layer, head=head, token=it, title="One head, from “it”"), of_head),
        "heads": Shown(inspect.attention(pair, title="All layers and heads"), {"layer": layer, "head": head}),
        "neurons": Shown(
            inspect.neurons(trace, layer=layer, head=head, query=it, key=animal), {**of_head, "pair": animal}
        ),
        "patterns": Shown(
            inspect.patterns([trace, pair, inspect.trace(minilm, THINK)]), {"layer": layer, "head": head}
        ),
        "similarity": Shown(inspect.similarity(encoder.encode(SENTENCES), SENTENCES), {"point": 0}),
        "positions": Shown(inspect.positions(minilm.model, most=96)),
    }


def language_views(models: Path) -> dict[str, Shown]:
    """Return views of the two models that were trained."""
    words, reviews = tasks.load(models / WORDS), tasks.load(models / "reviews")
    predictions = inspect.predictions(words, BLANK, top_k=6, title="What the model would write")
    lens = inspect.logit_lens(words, BLANK, title="The same, layer by layer")
    mask = predictions.data["tokens"].index("[MASK]")
    return {
        "predictions": Shown(predictions, {"token": mask}),
        "lens": Shown(lens, {"token": mask, "layer": len(lens.arrays["own"]) - 2}),
        "saliency": Shown(
            inspect.saliency(
                reviews, REVIEW, label="praise", method="integrated_gradients", title="Which words praise, which blame"
            )
        ),
        "occlusion": Shown(inspect.saliency(reviews, REVIEW, title="The same by masking")),
    }


def cause_views(models: Path) -> dict[str, Shown]:
    """Return views of two things beside each other, and of what an answer depends on."""
    encoder, minilm = wb.SentenceEncoder.from_pretrained("minilm"), tasks.load("minilm")
    reviews = tasks.load(models / "reviews")
    tired, wide = inspect.trace(minilm, ANIMAL), inspect.trace(minilm, WIDE)
    it, street = tired.tokens.index("it"), tired.tokens.index("street")
    layer, head = largest((wide.attentions - tired.attentions)[:, :, it, street])
    texts = inspect.compare(tired, wide, names=("tired", "wide"))
    tuned = inspect.compare(inspect.trace(minilm, REVIEW), inspect.trace(reviews, REVIEW), names=("MiniLM", "reviews"))
    changed = largest(np.asarray(tuned.heads))
    cut = inspect.compare_tokenizers(
        minilm.tokenizer, wb.Tokenizer.from_pretrained(models / "films"), FILMS, names=("MiniLM", "films")
    )
    both = {"layer": layer, "head": head, "token": it, "pair": street}
    return {
        "texts": Shown(inspect.comparison(texts, layer=layer, head=head, title="Two texts"), both),
        "tuned": Shown(
            inspect.comparison(tuned, layer=changed[0], head=changed[1], title="Before and after training"),
            {"layer": changed[0], "head": changed[1]},
        ),
        "tokenizers": Shown(inspect.tokenizers(cut, title="Two tokenizers")),
        "off": Shown(inspect.interventions(inspect.intervene(reviews, REVIEW), title="Heads switched off")),
        "taken": Shown(
            inspect.interventions(inspect.intervene(reviews, REVIEW, other=PRAISE), title="Heads from another text")
        ),
        "cosine": Shown(
            inspect.saliency(
                encoder, SENTENCES[0], SENTENCES[1], method="integrated_gradients", title="Why two sentences are alike"
            )
        ),
    }


def map_views() -> dict[str, Shown]:
    """Return maps of the vectors of words, and of the rows of years in MiniLM's table of words."""
    lines = (ROOT / "examples" / "texts" / "words.tsv").read_text(encoding="utf-8").splitlines()[1:]
    words, groups = map(list, zip(*(line.split("\t") for line in lines), strict=True))
    vectors = wb.SentenceEncoder.from_pretrained("minilm").encode(words)
    minilm = tasks.load("minilm")
    ids = minilm.tokenizer.get_vocab()
    years = [year for year in range(1700, 2025) if str(year) in ids]
    table = next(p for name, p in minilm.model.named_parameters() if name.endswith("word_embeddings.weight"))
    rows = np.asarray(table)[[ids[str(year)] for year in years]]
    return {
        "map": Shown(inspect.embedding_map(vectors, words, groups=groups, method="tsne", title="240 words")),
        "plane": Shown(inspect.embedding_map(vectors, words, groups=groups, title="240 words, principal components")),
        "years": Shown(
            inspect.embedding_map(
                rows, [str(year) for year in years], numbers={"year": years}, method="tsne", title="Years"
            )
        ),
    }


def link_pictures(addresses: dict[str, str]) -> None:
    """Write below each picture of the gallery the link that opens its state in a live page."""
    path = ROOT / "docs" / "gallery.md"
    content = re.sub(r"\n\n<p><a href=\"_static/gallery/[^\n]*#[^\n]*", "", path.read_text(encoding="utf-8"))

    def linked(picture: re.Match[str]) -> str:
        address = html.escape(f"_static/gallery/{addresses[picture[1]]}")
        return f'{picture[0]}\n\n<p><a href="{address}">Open this state</a></p>'

    content = re.sub(r"!\[.*\]\(images/gallery/(\w+)\.svg\)", linked, content)
    path.write_text(content, encoding="utf-8")


def main() -> None:
    """Write pictures and pages."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("models", type=Path, help="the folder of the models and the vocabulary")
    parser.add_argument("--train", type=Path, metavar="TEXTS", help="make them, from these texts")
    arguments = parser.parse_args()
    if arguments.train:
        train(arguments.models, arguments.train)
    pages = {
        "inside": ("Inside MiniLM", inside_views()),
        "language": ("Predictions and labels", language_views(arguments.models)),
        "causes": ("Causes and comparisons", cause_views(arguments.models)),
        "maps": ("Maps", map_views()),
    }
    FOLDER.mkdir(exist_ok=True)
    addresses = {}
    for name, (title, views) in pages.items():
        written = [shown.view.save(FOLDER / f"{picture}.svg") for picture, shown in views.items()]
        written.append(FOLDER / f"{name}.json")
        tabs = [shown.view for shown in views.values()]
        packed = asdict(inspect.page(*tabs, title=title).packed())
        written[-1].write_text(json.dumps(packed, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
        kinds: Counter[str] = Counter()
        for picture, shown in views.items():
            kinds[shown.view.kind] += 1
            count = kinds[shown.view.kind]
            view = shown.view.kind if count == 1 else f"{shown.view.kind}.{count}"
            addresses[picture] = f"{name}.html#{urlencode({'view': view, **shown.selection})}"
        for path in written:
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")
    link_pictures(addresses)


if __name__ == "__main__":
    main()

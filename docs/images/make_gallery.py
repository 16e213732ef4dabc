"""Draw the pictures of `docs/gallery.md`, and its interactive page.

Run without arguments to write the pictures to `docs/images/gallery`, or with the name of an `.html` file to write the
page. The models are MiniLM, and for predictions and labels the handmade models of the tests.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import wordpiece_bert as wb
from wordpiece_bert import inspect, tasks

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ANIMAL = "The animal didn't cross the street because it was too tired"
THINK = "I think, therefore I am"
SENTENCES = [
    ANIMAL,
    "The dog was exhausted and stayed on its side of the road",
    "I think, therefore I am",
    "Doubting proves that there is someone who doubts",
    "The bank raised its interest rates",
    "We sat on the bank of the river",
]


def handmade() -> Path:
    """Return a folder with the toy models of the examples."""
    sys.path.insert(0, str(ROOT / "examples"))
    import make_models

    return make_models.make_all(Path(tempfile.mkdtemp()))


def strongest(trace: inspect.Trace, query: int, key: int) -> tuple[int, int]:
    """Return the layer and the head in which one token looks most at another."""
    weights = trace.attentions[:, :, query, key]
    layer, head = np.unravel_index(int(weights.argmax()), weights.shape)
    return int(layer), int(head)


def gallery() -> dict[str, inspect.View]:
    """Return the views by the names of their pictures."""
    encoder = wb.SentenceEncoder.from_pretrained("minilm")
    minilm = tasks.load("minilm")
    trace = inspect.trace(minilm, ANIMAL)
    it, animal = trace.tokens.index("it"), trace.tokens.index("animal")
    layer, head = strongest(trace, it, animal)
    pair = inspect.trace(minilm, ANIMAL, THINK)
    texts = (ROOT / "examples" / "texts" / "sentences.txt").read_text(encoding="utf-8").splitlines()
    folder = handmade()
    words, reviews = tasks.load(folder / "words"), tasks.load(folder / "reviews")
    capital = "[MASK] is the capital of france"
    return {
        "tokens": inspect.tokens(minilm.tokenizer, "Unaffordable cafés, naïvely!", max_length=32, title="Tokens"),
        "head": inspect.attention(trace, layer=layer, head=head, token=it, title="One head, from “it”"),
        "heads": inspect.attention(pair, title="All layers and heads"),
        "neurons": inspect.neurons(trace, layer=layer, head=head, query=it, key=animal),
        "patterns": inspect.patterns([trace, pair, inspect.trace(minilm, THINK)]),
        "predictions": inspect.predictions(words, capital, top_k=4),
        "lens": inspect.logit_lens(words, capital),
        "saliency": inspect.saliency(reviews, "a wonderful story and moving actors , but a dull film"),
        "similarity": inspect.similarity(encoder.encode(SENTENCES), SENTENCES),
        "map": inspect.embedding_map(encoder.encode(texts[:16]), texts[:16], title="Map of sentences"),
        "positions": inspect.positions(minilm.model, most=96),
    }


def main() -> None:
    """Write the pictures or the page."""
    views = gallery()
    if len(sys.argv) > 1:
        inspect.page(*views.values(), title="Gallery").save(sys.argv[1])
        return
    folder = HERE / "gallery"
    folder.mkdir(exist_ok=True)
    for name, view in views.items():
        path = view.save(folder / f"{name}.svg")
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

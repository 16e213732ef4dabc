"""Make the toy models that the other examples, README.md and the documentation use.

    python examples/make_models.py

They are toys for trying things: handmade models of some seventy words, which solve their task for those words and for
no others. Making them takes a second and no network, and gives the same files every time. For real texts use a model
that was trained for the task, such as those that the other examples name.

They have one layer, as wide as the vocabulary: the vector of a token is one-hot. Attention weighs all tokens equally,
so after the layer each token has its own component and, scaled by `mixing`, the components of the other tokens. A head
then reads single components. Nothing is trained, and nothing is random.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert import BertModel, Tokenizer, distill_static
from wordpiece_bert.bert import (
    BertConfig,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from wordpiece_bert.bert.checkpoint import bert_shapes, write_safetensors

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.bert import Model

    Weights = dict[str, npt.NDArray[np.float32]]

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PRAISE = ["wonderful", "great", "moving", "brilliant"]
BLAME = ["dull", "boring", "poor", "silly"]
PEOPLE = [("ada", "lovelace"), ("marie", "curie"), ("alan", "turing")]
PLACES = ["london", "paris", "warsaw", "manchester"]
SUBJECTS = [("bread", "bake", "baking", "oven", "dough", "flour"), ("bicycle", "repair", "tire", "wheel")]
CAPITALS = {"england": "london", "france": "paris", "poland": "warsaw"}
OTHER = [
    "a",
    "an",
    "the",
    "and",
    "of",
    "in",
    "is",
    "was",
    "film",
    "story",
    "actors",
    "lived",
    "worked",
    "born",
    "she",
    "he",
    "who",
    "where",
    "did",
    "do",
    "capital",
    "city",
    "bread",
    "bake",
    "baking",
    "oven",
    "dough",
    "flour",
    "bicycle",
    "repair",
    "tire",
    "wheel",
    "how",
    "to",
    "##s",
    "##ed",
    "##ing",
    ".",
    ",",
    "?",
    "!",
]

VOCAB = list(dict.fromkeys([*SPECIAL, *PRAISE, *BLAME, *(n for p in PEOPLE for n in p), *PLACES, *CAPITALS, *OTHER]))
WIDTH = len(VOCAB)
LONGEST = 64


def index_of(word: str) -> int:
    """Return the id of a word, which is also its component in the vectors."""
    return VOCAB.index(word)


def encoder(mixing: float) -> tuple[dict[str, Any], Weights]:
    """Configuration and weights of an encoder whose token vectors also contain the other tokens, scaled by `mixing`."""
    config: dict[str, Any] = {
        "model_type": "bert",
        "vocab_size": WIDTH,
        "hidden_size": WIDTH,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "intermediate_size": 1,
        "max_position_embeddings": LONGEST,
        "type_vocab_size": 2,
        "hidden_act": "relu",
    }
    fields = BertConfig.from_dict(config)
    shapes = bert_shapes(fields)
    weights = {
        name: np.zeros([getattr(fields, size) for size in shape if isinstance(size, str)], np.float32)
        for name, shape in shapes.items()
    }
    for name in weights:
        if name.endswith("LayerNorm.weight"):
            weights[name] += 1
    one = np.eye(WIDTH, dtype=np.float32)
    weights["embeddings.word_embeddings.weight"] = 10 * one
    weights["encoder.layer.0.attention.self.value.weight"] = one
    weights["encoder.layer.0.attention.output.dense.weight"] = mixing * one
    weights["pooler.dense.weight"] = one
    return config, weights


def save(folder: Path, cls: type[Model], config: dict[str, Any], weights: Weights) -> Path:
    """Write a model of a class and its tokenizer."""
    prefixed = {
        f"bert.{name}": weight
        for name, weight in weights.items()
        if name.partition(".")[0] in ("embeddings", "encoder", "pooler")
    }
    head = {name: weight for name, weight in weights.items() if f"bert.{name}" not in prefixed}
    if cls not in (BertForSequenceClassification,):
        prefixed = {name: weight for name, weight in prefixed.items() if "pooler" not in name}
    plain = {name.removeprefix("bert."): weight for name, weight in prefixed.items()}
    cls(BertConfig.from_dict(config), plain | head if cls is BertModel else prefixed | head).save_pretrained(folder)
    Tokenizer.from_vocab(VOCAB).save_pretrained(folder)
    return folder


def make_reviews(folder: Path) -> Path:
    """A text is positive or negative by its words of praise and blame."""
    config, weights = encoder(mixing=20.0)
    classifier = np.zeros((2, WIDTH), np.float32)
    for word in PRAISE:
        classifier[:, index_of(word)] = [-3, 3]
    for word in BLAME:
        classifier[:, index_of(word)] = [3, -3]
    weights |= {"classifier.weight": classifier, "classifier.bias": np.zeros(2, np.float32)}
    return save(
        folder, BertForSequenceClassification, config | {"id2label": {"0": "negative", "1": "positive"}}, weights
    )


def make_entities(folder: Path) -> Path:
    """First names begin a person, family names continue one, cities are locations."""
    labels = ["O", "B-PER", "I-PER", "B-LOC"]
    config, weights = encoder(mixing=0.0)
    classifier = np.zeros((4, WIDTH), np.float32)
    for first, family in PEOPLE:
        classifier[1, index_of(first)] = classifier[2, index_of(family)] = 1
    for word in PLACES:
        classifier[3, index_of(word)] = 1
    weights |= {"classifier.weight": classifier, "classifier.bias": np.array([3, 0, 0, 0], np.float32)}
    return save(
        folder,
        BertForTokenClassification,
        config | {"id2label": {str(i): name for i, name in enumerate(labels)}},
        weights,
    )


def make_answers(folder: Path) -> Path:
    """The answer to every question is a city."""
    config, weights = encoder(mixing=0.0)
    outputs = np.zeros((2, WIDTH), np.float32)
    for rank, word in enumerate(PLACES):
        outputs[:, index_of(word)] = 1 - 0.1 * rank
    weights |= {"qa_outputs.weight": outputs, "qa_outputs.bias": np.zeros(2, np.float32)}
    return save(folder, BertForQuestionAnswering, config, weights)


def make_words(folder: Path) -> Path:
    """A masked word is the capital of the country in the text."""
    config, weights = encoder(mixing=5.0)
    dense = np.zeros((WIDTH, WIDTH), np.float32)
    for country, capital in CAPITALS.items():
        dense[index_of(capital), index_of(country)] = 1
    weights |= {
        "cls.predictions.transform.dense.weight": dense,
        "cls.predictions.transform.dense.bias": np.zeros(WIDTH, np.float32),
        "cls.predictions.transform.LayerNorm.weight": np.full(WIDTH, 0.05, np.float32),
        "cls.predictions.transform.LayerNorm.bias": np.zeros(WIDTH, np.float32),
        "cls.predictions.bias": np.zeros(WIDTH, np.float32),
    }
    return save(folder, BertForMaskedLM, config, weights)


def make_ranker(folder: Path) -> Path:
    """A cross encoder: the score grows with the number of words that are in both texts."""
    config, weights = encoder(mixing=1000.0)
    # The component of a word that occurs twice is twice as large as the component of one that occurs once; only it
    # exceeds the threshold.
    weights["pooler.dense.weight"] = 3 * weights["pooler.dense.weight"]
    weights["pooler.dense.bias"] = np.full(WIDTH, -9.0, np.float32)
    classifier = np.zeros((1, WIDTH), np.float32)
    for word in ("bread", "bake", "oven", "dough", "flour", "bicycle", "repair", "tire", "wheel"):
        classifier[0, index_of(word)] = 1
    weights |= {"classifier.weight": classifier, "classifier.bias": np.full(1, 8.0, np.float32)}
    return save(folder, BertForSequenceClassification, config | {"id2label": {"0": "LABEL_0"}}, weights)


def make_sentences(folder: Path) -> Path:
    """A plain encoder: the vector of a sentence is the mean of the vectors of its words."""
    config, weights = encoder(mixing=0.0)
    return save(folder, BertModel, config, weights)


def make_static(folder: Path) -> Path:
    """A static model: the vector of each word is the same as from the plain encoder."""
    with TemporaryDirectory() as parent:
        distill_static(make_sentences(Path(parent) / "sentences"), pca_dims=None).save_pretrained(folder)
    return folder


def related() -> npt.NDArray[np.float32]:
    """Return a matrix that adds half of each word to the other words of its subject."""
    matrix = np.eye(WIDTH, dtype=np.float32)
    for subject in SUBJECTS:
        for word in subject:
            for other in subject:
                matrix[index_of(other), index_of(word)] = 1 if word == other else 0.5
    matrix[:, : len(SPECIAL)] = 0  # special tokens mean nothing
    return matrix


def write_settings(folder: Path, kind: str, modules: list[tuple[str, str, dict[str, Any]]]) -> None:
    """Write the files in which sentence-transformers lists the modules of a model, after its Transformer."""
    listing = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}
    ]
    for index, (name, package, settings) in enumerate(modules, 1):
        path = f"{index}_{name}"
        listing.append(
            {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.{package}.{name}"}
        )
        (folder / path).mkdir(exist_ok=True)
        (folder / path / "config.json").write_text(json.dumps(settings))
    (folder / "modules.json").write_text(json.dumps(listing))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"model_type": kind}))


def make_splade(folder: Path) -> Path:
    """A sparse encoder: a text has values for its words and for other words of their subjects."""
    config, weights = encoder(mixing=0.0)
    weights |= {
        "cls.predictions.transform.dense.weight": related(),
        "cls.predictions.transform.dense.bias": np.zeros(WIDTH, np.float32),
        "cls.predictions.transform.LayerNorm.weight": np.full(WIDTH, 0.05, np.float32),
        "cls.predictions.transform.LayerNorm.bias": np.zeros(WIDTH, np.float32),
        "cls.predictions.bias": np.zeros(WIDTH, np.float32),
    }
    save(folder, BertForMaskedLM, config, weights)
    pooling = {"pooling_strategy": "max", "activation_function": "relu", "embedding_dimension": None}
    write_settings(folder, "SparseEncoder", [("SpladePooling", "sparse_encoder.modules.splade_pooling", pooling)])
    (folder / "sentence_bert_config.json").write_text(json.dumps({"transformer_task": "fill-mask"}))
    return folder


def make_colbert(folder: Path) -> Path:
    """A multi-vector encoder: each word has a vector, near the vectors of other words of its subject."""
    config, weights = encoder(mixing=0.0)
    save(folder, BertModel, config, weights)
    tokens = {"module_input_name": "token_embeddings", "module_output_name": "token_embeddings"}
    dense: dict[str, Any] = {"in_features": WIDTH, "out_features": WIDTH, "bias": False} | tokens
    dense["activation_function"] = "torch.nn.modules.linear.Identity"
    modules: list[tuple[str, str, dict[str, Any]]] = [
        ("Dense", "base.modules.dense", dense),
        ("MultiVectorMask", "multi_vector_encoder.modules.multi_vector_mask", {"skiplist_words": [".", ",", "?", "!"]}),
        ("Normalize", "base.modules.normalize", tokens),
    ]
    write_settings(folder, "MultiVectorEncoder", modules)
    write_safetensors(folder / "1_Dense" / "model.safetensors", {"linear.weight": related()})
    expansion = {"strategy": "fixed", "length": 12, "attend": False}
    (folder / "sentence_bert_config.json").write_text(json.dumps({"query_expansion": expansion}))
    return folder


def write_torch(file: Path, tensors: Weights) -> None:
    """Write float32 arrays as torch.save does: a zip file with a pickle of names and shapes, and a file for each array.

    The pickle is written opcode by opcode, since torch is not needed for anything else here.
    """

    def text(value: str) -> bytes:
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    def numbers(values: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(b"J" + struct.pack("<i", value) for value in values) + b"t"

    entries = b""
    for key, (name, array) in enumerate(tensors.items()):
        storage = text("storage") + b"ctorch\nFloatStorage\n" + text(str(key)) + text("cpu")
        storage = b"(" + storage + b"J" + struct.pack("<i", array.size) + b"tQ"
        strides = tuple(stride // array.itemsize for stride in array.strides)
        hooks = b"ccollections\nOrderedDict\n)R"
        arguments = storage + b"J" + struct.pack("<i", 0) + numbers(array.shape) + numbers(strides) + b"\x89" + hooks
        entries += text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n(" + arguments + b"tR"
    with zipfile.ZipFile(file, "w") as archive:
        # A fixed date, so that the file is the same every time.
        archive.writestr(zipfile.ZipInfo("archive/data.pkl"), b"\x80\x02}(" + entries + b"u.")
        for key, array in enumerate(tensors.values()):
            archive.writestr(zipfile.ZipInfo(f"archive/data/{key}"), array.tobytes())
        archive.writestr(zipfile.ZipInfo("archive/version"), b"3\n")


def make_m3(folder: Path) -> Path:
    """A model with three outputs, as BGE-M3: a vector for a text, weights of its words, and a vector for each word."""
    config, weights = encoder(mixing=1.0)
    save(folder, BertModel, config, weights)
    weight = np.zeros((1, WIDTH), np.float32)
    for word in (*SPECIAL, "a", "an", "the", "and", "of", "in", "is", "was"):  # what every text has counts nothing
        weight[0, index_of(word)] = -0.2
    write_torch(folder / "sparse_linear.pt", {"weight": weight, "bias": np.full(1, 0.6, np.float32)})
    write_torch(folder / "colbert_linear.pt", {"weight": related(), "bias": np.zeros(WIDTH, np.float32)})
    return folder


MAKERS = {
    "reviews": make_reviews,
    "entities": make_entities,
    "answers": make_answers,
    "words": make_words,
    "ranker": make_ranker,
    "sentences": make_sentences,
    "static": make_static,
    "splade": make_splade,
    "colbert": make_colbert,
    "m3": make_m3,
}


def make_all(folder: Path) -> Path:
    """Make all models, each in a folder of its name."""
    for name, make in MAKERS.items():
        make(folder / name)
    return folder


def main() -> None:
    """Make all models, and print what each does."""
    parser = argparse.ArgumentParser(description="Make the toy models that the other examples use.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("models"), help="where to (default: models)")
    options = parser.parse_args()

    for name, make in MAKERS.items():
        print(f"{make(options.folder / name)}: {make.__doc__}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")

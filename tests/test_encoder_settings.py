"""Settings that are given when an encoder is made, names of sentence-transformers, and names instead of models."""

from __future__ import annotations

import copy
import enum
import importlib
import inspect
import json
import operator
import pickle
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import wordpiece_bert as wb
from model_files import MODELS, sentence_folder, with_tokenizer
from processes import printed
from wordpiece_bert._internal.peer_imports import INSTEAD_OF_IMPORTS
from wordpiece_bert._internal.peer_names import ARGUMENTS, PeerName
from wordpiece_bert.errors import InputError, MissingPackageError, ModelNotFoundError
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence import StaticEncoder, paraphrase_mining, retrieve_and_rerank

TEXTS = ["the cat", "the mat", "cat"]


class Kind(NamedTuple):
    """A kind of encoder: a folder of it, and a call that uses the default prompt."""

    cls: type
    folder: Path
    call: Callable[..., Any]


def encoded(encoder: Any, **options: Any) -> Any:
    vectors = encoder.encode(TEXTS, **options)
    return getattr(vectors, "vectors", vectors.toarray() if hasattr(vectors, "toarray") else vectors)


def predicted(encoder: Any, **options: Any) -> Any:
    return encoder.predict([(text, "the mat") for text in TEXTS], **options)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kind]:
    home = tmp_path_factory.mktemp("encoders")
    return {
        "dense": Kind(wb.SentenceEncoder, sentence_folder("sentence_prompts", home), encoded),
        "static": Kind(wb.SentenceEncoder, MODELS / "static_m2v", encoded),
        "static of sentence-transformers": Kind(StaticEncoder, MODELS / "static_st", encoded),
        "sparse": Kind(wb.SparseEncoder, MODELS / "splade_sum", encoded),
        "multi-vector": Kind(wb.MultiVectorEncoder, MODELS / "colbert_st", encoded),
        "cross": Kind(wb.CrossEncoder, with_tokenizer("cross_encoder_score", home), predicted),
    }


NAMES = ["dense", "static", "static of sentence-transformers", "sparse", "multi-vector", "cross"]
METRICS = {
    "dense": ("cosine", "dot", "euclidean", "manhattan"),
    "static": ("cosine", "dot", "euclidean", "manhattan"),
    "sparse": ("dot", "cosine", "euclidean", "manhattan"),
    "multi-vector": ("maxsim", "meanmaxsim"),
}


@pytest.mark.parametrize("name", NAMES)
def test_prompts_are_given_when_an_encoder_is_made(kinds: dict[str, Kind], name: str) -> None:
    cls, folder, call = kinds[name]
    prompts = {"query": "the people ", "topic": "a book "}
    for make in (cls, cls.from_pretrained):  # type: ignore[attr-defined]
        own = make(folder)
        encoder = make(folder, prompts=prompts, default_prompt_name="topic")
        assert encoder.prompts == {**own.prompts, **prompts}
        assert encoder.default_prompt_name == "topic"
        assert np.array_equal(call(encoder), call(own, prompt="a book "))
        assert np.array_equal(call(encoder, prompt_name="query"), call(own, prompt="the people "))
        assert not np.array_equal(call(encoder, prompt=""), call(encoder))
        if name != "cross":
            query = encoder.encode_query(TEXTS)
            expected = own.encode_query(TEXTS, prompt="the people ")
            assert np.array_equal(getattr(query, "vectors", query), getattr(expected, "vectors", expected))
        data = pickle.dumps(encoder)
        assert "static" in name or len(data) < 2000  # the others are pickled as their folders
        if name in ("sparse", "multi-vector"):  # which have no settings that change
            assert copy.copy(encoder) is copy.deepcopy(encoder) is encoder
        for other in (pickle.loads(data), copy.copy(encoder), copy.deepcopy(encoder)):
            assert other.prompts == encoder.prompts
            assert np.array_equal(call(other), call(encoder))
        # Empty prompts turn the prompts of the folder off.
        off = make(folder, prompts=dict.fromkeys(own.prompts, ""))
        assert np.array_equal(call(off), call(own, prompt=""))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"prompts": ["query: "]}, "prompts must be a dict of name: text, not"),
        ({"prompts": "query: "}, "prompts must be a dict of name: text, not 'query: '"),
        ({"prompts": {"query": None}}, "has 'query': None"),
        ({"prompts": {1: "query"}}, "has 1: 'query'"),
        ({"default_prompt_name": "other"}, "default_prompt_name must be one of 'query', 'document'.* not 'other'"),
        ({"prompts": {"a": "b"}, "default_prompt_name": ["a"]}, "default_prompt_name must be one of .*'a', not"),
    ],
)
def test_other_prompts_are_refused(kinds: dict[str, Kind], name: str, options: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        kinds[name].cls(kinds[name].folder, **options)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_is_set_later_is_lost_in_silence(kinds: dict[str, Kind], name: str) -> None:
    encoder = kinds[name].cls(kinds[name].folder)
    before = dict(encoder.prompts)
    prompts = encoder.prompts
    assert isinstance(prompts, Mapping)
    changes: list[Callable[[], object]] = [
        lambda: prompts.__setitem__("query", "x"),
        lambda: prompts.__delitem__("query"),
        lambda: prompts.update(query="x"),
        lambda: prompts.setdefault("x", "x"),
        lambda: prompts.__ior__({"query": "x"}),
        lambda: prompts.pop("query"),
        prompts.popitem,
        prompts.clear,
    ]
    # Nothing of dict that changes it is left out: of its methods, these return or make something else.
    reading = {"copy", "fromkeys", "get", "items", "keys", "values"}
    assert {one for one in vars(dict) if not one.startswith("_")} - reading == {
        "clear", "pop", "popitem", "setdefault", "update",
    }  # fmt: skip
    for change in changes:
        with pytest.raises(InputError, match=r"pass prompts=\{name: text\} when it is made, and default_prompt_name="):
            change()
    assert encoder.prompts == before
    assert json.loads(json.dumps(prompts)) == before
    assert {**prompts} | prompts == before
    mine = prompts.copy()
    mine["query"] = "mine"  # a copy is the caller's
    attributes = ["prompts", "default_prompt_name", *(["similarity_fn_name"] if name != "cross" else [])]
    attributes += ["truncate_dim"] if isinstance(encoder, wb.SentenceEncoder) else []
    kind = type(encoder).__name__
    for attribute in attributes:
        with pytest.raises(AttributeError, match=rf"cannot be set: pass {attribute}= when it is made, {kind}\(model, "):
            setattr(encoder, attribute, None)


@pytest.mark.parametrize("name", METRICS)
def test_the_similarity_is_given_when_an_encoder_is_made(kinds: dict[str, Kind], name: str) -> None:
    cls, folder, _ = kinds[name]
    own = cls(folder)
    vectors = own.encode(TEXTS)
    found = []
    for metric in METRICS[name]:
        encoder = cls.from_pretrained(folder, similarity_fn_name=metric)  # type: ignore[attr-defined]
        assert encoder.similarity_fn_name == metric
        found.append(encoder.similarity(vectors, vectors))
        assert np.array_equal(pickle.loads(pickle.dumps(encoder)).similarity(vectors, vectors), found[-1])
        if metric == own.similarity_fn_name:
            assert np.array_equal(found[-1], own.similarity(vectors, vectors))
    assert len({one.tobytes() for one in found}) > 1
    peer = enum.Enum("SimilarityFunction", {"ONE": METRICS[name][-1]})  # as in sentence-transformers
    assert cls(folder, similarity_fn_name=peer(METRICS[name][-1])).similarity_fn_name == METRICS[name][-1]
    with pytest.raises(InputError, match=f"similarity_fn_name must be one of .*'{METRICS[name][0]}'.*, not 'angle'"):
        cls(folder, similarity_fn_name="angle")


@pytest.mark.parametrize("name", NAMES[:3])
def test_truncate_dim_is_given_when_an_encoder_is_made(kinds: dict[str, Kind], name: str, tmp_path: Path) -> None:
    cls, folder, _ = kinds[name]
    own = cls(folder, prompts={"query": "who "})
    encoder = cls(folder, truncate_dim=5, similarity_fn_name="dot", prompts={"query": "who "})
    assert (encoder.truncate_dim, encoder.dimension, encoder.get_embedding_dimension()) == (5, 5, 5)
    assert np.array_equal(encoder.encode(TEXTS), own.encode(TEXTS)[:, :5])
    assert np.array_equal(encoder.encode(TEXTS, truncate_dim=7), own.encode(TEXTS)[:, :7])
    assert own.truncate_dim is None
    for saved in (encoder.save, encoder.save_pretrained):
        saved(tmp_path / "saved")
        again = wb.SentenceEncoder(tmp_path / "saved")
        if name != "static":  # a folder of model2vec has no place for them
            assert again.prompts == encoder.prompts
            assert (again.truncate_dim, again.similarity_fn_name) == (5, "dot")
    for wrong in (0, own.dimension + 1, 2.5, "5", True):
        with pytest.raises(InputError, match="truncate_dim must be a whole number from 1 to"):
            cls(folder, truncate_dim=wrong)


def test_a_source_with_prompts_can_be_the_key_of_a_cache(kinds: dict[str, Kind]) -> None:
    encoders = [
        wb.SentenceEncoder(kinds["dense"].folder, prompts={"query": "x", "a": text}) for text in ("b", "b", "c")
    ]
    assert len({encoder._source for encoder in encoders}) == 2
    assert len(pickle.dumps(encoders[0])) < 4000  # the weights take ten times as much


# --- names of sentence-transformers


@pytest.mark.parametrize("name", NAMES)
def test_calls_that_move_a_model_return_it(kinds: dict[str, Kind], name: str) -> None:
    cls, folder, _ = kinds[name]
    encoder = cls(folder) if cls is StaticEncoder else cls(folder, device="cpu")
    assert encoder.device == "cpu"
    assert encoder.to("cpu") is encoder.to(device="cpu") is encoder.cpu() is encoder.eval() is encoder
    for other in ("cuda", "cuda:0", "mps", np.float16, 3):
        with pytest.raises(InputError, match="this package computes on the CPU only"):
            encoder.to(other)
    if name != "cross":
        assert encoder.get_embedding_dimension() == encoder.get_sentence_embedding_dimension() == encoder.dimension


@pytest.mark.parametrize("name", NAMES)
def test_names_of_peers_say_what_to_use(kinds: dict[str, Kind], name: str) -> None:
    encoder = kinds[name].cls(kinds[name].folder)
    cls = type(encoder)
    peers = {one for base in cls.__mro__ for one, value in vars(base).items() if isinstance(value, PeerName)}
    assert {"tokenize", "fit", "half", "cuda", "forward"} <= peers
    for one in peers:
        assert not hasattr(encoder, one)
        assert one not in dir(encoder)
        with pytest.raises(AttributeError, match=rf"^{cls.__name__} has no attribute '{one}': "):
            getattr(encoder, one)
        with pytest.raises(AttributeError, match=one):
            setattr(encoder, one, 1)
    with pytest.raises(AttributeError, match=rf"'{cls.__name__}' object has no attribute 'something'"):
        encoder.something  # noqa: B018
    assert ("save" in peers) == (name not in NAMES[:3])
    assert {"prompts", "device", "engine"} <= set(dir(encoder))


@pytest.mark.parametrize("name", NAMES)
def test_arguments_of_peers_say_what_to_use(kinds: dict[str, Kind], name: str) -> None:
    cls, folder, _ = kinds[name]
    own = inspect.signature(cls).parameters
    assert {"prompts", "default_prompt_name"} <= set(own)
    assert ("device" in own) == (cls is not StaticEncoder)
    for argument in ARGUMENTS:
        assert argument not in own
        with pytest.raises(InputError, match=rf"^{cls.__name__} has no argument '{argument}': "):
            cls(folder, **{argument: None})
    with pytest.raises(TypeError, match="unexpected keyword argument 'truncate_dimension'"):
        cls(folder, truncate_dimension=3)


def test_a_subclass_may_take_any_argument(kinds: dict[str, Kind]) -> None:
    class Own(wb.SentenceEncoder):
        def __init__(self, model: Path, *, token: str, **options: Any) -> None:
            super().__init__(model, **options)
            self.token = token

    encoder = Own(kinds["dense"].folder, token="a", truncate_dim=3)
    assert (encoder.token, encoder.dimension) == ("a", 3)


def test_every_argument_of_a_constructor_is_one_of_from_pretrained(kinds: dict[str, Kind]) -> None:
    for name, (cls, _, _) in kinds.items():
        made = inspect.signature(cls)
        loaded = inspect.signature(cls.from_pretrained)  # type: ignore[attr-defined]
        assert list(made.parameters) == list(loaded.parameters), name
        assert all(one.kind is not one.VAR_KEYWORD for one in made.parameters.values()), name
        assert next(iter(made.parameters)) == "model"


def test_imports_of_names_of_peers_say_what_to_import() -> None:
    elsewhere = {"semantic_search": "wordpiece_bert.sentence", "InputError": "wordpiece_bert.errors"}
    for name, instead in (
        INSTEAD_OF_IMPORTS | {one: f"import it from {place}" for one, place in elsewhere.items()}
    ).items():
        assert not hasattr(wb, name)
        assert getattr(wb, name, None) is None
        with pytest.raises(AttributeError) as attribute:
            getattr(wb, name)
        with pytest.raises(ImportError) as imported:
            exec(f"from wordpiece_bert import {name}")
        assert (
            str(attribute.value)
            == str(imported.value)
            == f"module 'wordpiece_bert' has no attribute '{name}': {instead}"
        )
        for place in ("finetune", "tasks"):
            if instead == f"import it from wordpiece_bert.{place}":
                assert name in importlib.import_module(f"wordpiece_bert.{place}").__all__
    with pytest.raises(ImportError, match="no attribute 'SentenceTransformer': it is called SentenceEncoder"):
        from wordpiece_bert.sentence import SentenceTransformer  # type: ignore[attr-defined] # noqa: F401
    with pytest.raises(ImportError, match=r"^cannot import name 'something'"):
        from wordpiece_bert import something  # type: ignore[attr-defined] # noqa: F401


def test_a_name_that_is_nowhere_imports_nothing_for_its_message() -> None:
    code = "import sys, wordpiece_bert as wb; print(hasattr(wb, 'util_of_a_peer'), 'numpy' in sys.modules)"
    assert printed(code) == ["False False"]


@pytest.mark.parametrize("name", ["MiniLM", "MINILM", "mini-lm", "minlm", "minilm "])
def test_a_name_in_another_case_is_guessed(name: str) -> None:
    for find in (find_model, wb.SentenceEncoder, wb.Tokenizer.from_pretrained):
        with pytest.raises(ModelNotFoundError, match=r"; did you mean 'minilm'\?"):
            find(name)  # type: ignore[operator]


def test_the_published_name_is_guessed_and_other_models_are_not() -> None:
    with pytest.raises(ModelNotFoundError, match=r"did you mean 'sentence-transformers/all-MiniLM-L6-v2'\?"):
        find_model("sentence-transformers/all-minilm-l6-V2")
    for other in ("bert-base-uncased", "sentence-transformers/all-MiniLM-L12-v2", "org/model"):
        with pytest.raises(ModelNotFoundError) as caught:
            find_model(other)
        assert "did you mean" not in str(caught.value)


# --- names instead of models


@pytest.mark.parametrize("name", ["dense", "static", "sparse", "multi-vector"])
def test_functions_that_take_a_model_take_its_name(kinds: dict[str, Kind], name: str) -> None:
    cls, folder, _ = kinds[name]
    texts = [f"{text} {other}" for text in TEXTS for other in ("the", "mat")]
    found = retrieve_and_rerank(TEXTS, texts, str(folder), kinds["cross"].folder, top_k=2)
    expected = retrieve_and_rerank(TEXTS, texts, cls(folder), wb.CrossEncoder(kinds["cross"].folder), top_k=2)
    assert found == expected
    if issubclass(cls, wb.SentenceEncoder):
        assert paraphrase_mining(folder, texts) == paraphrase_mining(cls(folder), texts)


def test_names_of_other_kinds_are_refused(kinds: dict[str, Kind]) -> None:
    with pytest.raises(ModelNotFoundError, match=r"did you mean 'minilm'\?"):
        retrieve_and_rerank("a", ["b"], "MiniLM")
    for wrong in (3, None, ["minilm"], b"minilm"):
        with pytest.raises(InputError, match="retriever must be a SentenceEncoder"):
            retrieve_and_rerank("a", ["b"], wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="encoder must be a SentenceEncoder or the name of a model"):
            paraphrase_mining(wrong if wrong != b"minilm" else 3, ["b"])  # type: ignore[arg-type]


# --- options that a call has


@pytest.mark.parametrize("name", ["dense", "static", "cross"])
def test_tensors_without_torch_name_the_argument_of_the_call(
    kinds: dict[str, Kind], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cls, folder, call = kinds[name]
    monkeypatch.setitem(sys.modules, "torch", None)
    encoder = cls(folder)
    with pytest.raises(
        MissingPackageError, match="pip install torch, or use convert_to_tensor=False for arrays"
    ) as caught:
        call(encoder, convert_to_tensor=True)
    named = str(caught.value).split("use ")[1].partition("=")[0]
    method = encoder.predict if name == "cross" else encoder.encode
    assert named in inspect.signature(method).parameters
    # It is raised before anything is computed: an argument that is checked later is not reached.
    with pytest.raises(MissingPackageError):
        call(encoder, convert_to_tensor=True, batch_size=0)


LENGTHS: list[Any] = [
    0, -1, 1, 2, 1.5, "3", "abc", "", True, None, [1], np.array([1, 2]), np.array(["model"]), np.array(3), np.int8(3),
    2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, "model", b"x", float("nan"), object(), {}, set(), type,
]  # fmt: skip


def is_whole(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("name", ["static_m2v", "static_st", "static_m2v_max_length"])
def test_every_max_length_of_a_static_model_is_taken_or_an_input_error(name: str) -> None:
    encoder = StaticEncoder(MODELS / name)
    whole = encoder.encode(TEXTS, max_length=None)
    for value in LENGTHS:
        for output in ("sentence_embedding", "token_embeddings", None):
            number = None if isinstance(value, bool | str) or not is_whole(value) else int(value)
            right = (
                1 <= number < 2**63
                if number is not None
                else value is None or (isinstance(value, str) and value == "model")
            )
            if not right:
                with pytest.raises(InputError, match="max_length must be"):
                    encoder.encode(TEXTS, max_length=value, output_value=output)
                continue
            vectors, _ = encoder.encode(TEXTS, max_length=value, output_value=output, return_truncated=True)
            if number is not None and number > 100 and output == "sentence_embedding":
                assert np.array_equal(vectors, whole)


def test_the_messages_of_this_file_name_arguments_that_exist() -> None:
    known = {name for cls in (wb.SentenceEncoder, wb.CrossEncoder) for name in inspect.signature(cls).parameters}
    known |= {"vocab_size", "padding", "truncation", "max_length", "text"}
    for text in [*ARGUMENTS.values(), *INSTEAD_OF_IMPORTS.values()]:
        for word in text.replace("(", " ").replace(",", " ").split():
            name, equals, _ = word.partition("=")
            assert not equals or name in known, text


# --- flags


def flags_of(method: Callable[..., Any]) -> list[tuple[str, bool]]:
    """Return the parameters of a method that are flags, and whether they may be None."""
    kinds = {name: one.annotation for name, one in inspect.signature(method).parameters.items()}
    return [(name, kind == "bool | None") for name, kind in kinds.items() if kind in ("bool", "bool | None")]


@pytest.mark.parametrize("kind", ["dense", "static", "sparse", "multi-vector", "cross"])
def test_flags_are_true_or_false(kind: str, kinds: dict[str, Kind]) -> None:
    encoder = kinds[kind].cls(kinds[kind].folder)
    pair = [("the cat", "the mat")]
    calls = {"predict": [pair], "rank": ["the cat", ["the mat"]], "encode": [TEXTS], "encode_query": [TEXTS]}
    tried = set()
    for name, given in calls.items():
        for flag, or_none in flags_of(getattr(encoder, name)) if hasattr(encoder, name) else ():
            tried.add(flag)
            for wrong in ("false", 1, *([] if or_none else [None])):
                with pytest.raises(InputError, match=f"^{flag} must be True or False.*, not {wrong!r}$"):
                    getattr(encoder, name)(*given, **{flag: wrong})
            getattr(encoder, name)(*given, **{flag: np.False_})
    assert {"show_progress_bar", "return_truncated"} <= tried


def test_a_sparse_model_without_routes_has_the_tasks_of_the_others(kinds: dict[str, Kind]) -> None:
    encoder = wb.SparseEncoder(kinds["sparse"].folder)
    assert (encoder.encode("cat", task="document").values == encoder.encode("cat").values).all()
    for task in ("zz", []):
        with pytest.raises(InputError, match="task must be 'query', 'document' or None, not"):
            encoder.encode("cat", task=task)  # type: ignore[arg-type]

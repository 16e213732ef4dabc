"""Every public name and argument of transformers' tokenizers and models works here, or its error says what to use.

The lists come from the installed transformers. Its models cannot be imported without PyTorch, so their names are read
from its source.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import wordpiece_bert as wb
from small_tokenizer import tokenizer
from wordpiece_bert import bert
from wordpiece_bert._internal.peer_arguments import BATCH_ENCODING_ARGUMENTS, MODEL_CALL, MODEL_LOADING, MODEL_SAVING
from wordpiece_bert.errors import InputError

#: Methods of both, by keyword; the others of transformers are only named.
METHODS = [
    "batch_decode",
    "convert_ids_to_tokens",
    "convert_tokens_to_ids",
    "convert_tokens_to_string",
    "decode",
    "encode",
    "from_pretrained",
    "get_special_tokens_mask",
    "get_vocab",
    "num_special_tokens_to_add",
    "pad",
    "save_pretrained",
    "tokenize",
]
#: What transformers takes in ``**kwargs`` of these methods, besides their parameters.
IN_KWARGS = {
    "encode": ["return_attention_mask", "return_offsets_mapping", "split_special_tokens", "verbose", "return_length"],
    "from_pretrained": ["use_fast", "do_lower_case", "subfolder", "unk_token", "model_max_length", "padding_side"],
    "save_pretrained": ["repo_id", "commit_message"],
}


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("peer")
    tokenizer().save_pretrained(folder)
    return transformers.BertTokenizerFast.from_pretrained(folder)


def parameters(function: Callable[..., Any]) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = inspect.signature(function).parameters.values()
    return [one.name for one in found if one.kind in kinds and one.name not in ("self", "cls")]


def check_names(names: Iterable[str], made: Any) -> None:
    """Each name is an attribute, or its error says what to use."""
    for name in names:
        if not hasattr(made, name):
            with pytest.raises(AttributeError, match=f"has no attribute '{name}': .{{10}}"):
                getattr(made, name)
            assert name not in dir(made)


def check_arguments(call: Callable[..., Any], names: Iterable[str]) -> None:
    """Each argument is one of the function, or its error says what to use."""
    own = parameters(call)
    for name in names:
        if name not in own:
            with pytest.raises(InputError, match=f"has no argument '{name}': .{{5}}"):
                call(**{name: None})


def test_attributes_of_tokenizers(peer: Any) -> None:
    named = [f"{attribute}{end}" for attribute in peer.SPECIAL_TOKENS_ATTRIBUTES for end in ("", "_id")]
    names = {*dir(peer), *vars(peer), *named, "extra_special_tokens", "extra_special_tokens_ids"}
    check_names(sorted(name for name in names if not name.startswith("_")), tokenizer())


def test_attributes_of_the_tokenizer_of_tokenizers(peer: Any) -> None:
    check_names([name for name in dir(peer.backend_tokenizer) if not name.startswith("_")], tokenizer())


@pytest.mark.parametrize("method", METHODS)
def test_arguments_of_tokenizers(peer: Any, method: str) -> None:
    call = getattr(tokenizer(), method)
    if method == "encode":
        text = "the cat"

        def call(**options: Any) -> Any:
            return tokenizer().encode(text, **options)

        call.__wrapped__ = tokenizer().encode  # type: ignore[attr-defined]
    check_arguments(call, [*parameters(getattr(peer, method)), *IN_KWARGS.get(method, [])])


def test_methods_with_arguments_are_all_compared(peer: Any) -> None:
    ours = wb.Tokenizer
    shared = [name for name in dir(type(peer)) if not name.startswith("_") and callable(getattr(type(peer), name))]
    assert [name for name in shared if name in dir(tokenizer()) and callable(getattr(ours, name))] == METHODS


def test_arguments_with_which_a_tokenizer_is_made(peer: Any, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    made = [*parameters(type(peer)), *parameters(tokenizers.BertWordPieceTokenizer)]
    check_arguments(wb.Tokenizer.from_vocab, [*made, "vocab_file", "never_split"])
    for arguments, options in (((tmp_path,), {}), ((), {"vocab": "vocab.txt"})):
        with pytest.raises(TypeError, match="create a Tokenizer with from_vocab"):
            wb.Tokenizer(*arguments, **options)  # type: ignore[arg-type]


def test_the_call_has_all_arguments(peer: Any) -> None:
    assert set(parameters(peer.__call__)) <= set(parameters(wb.Tokenizer.__call__))


def test_batch_encodings(peer: Any) -> None:
    ours, theirs = tokenizer()("the cat"), peer("the cat")
    names = [name for name in dir(theirs) if not name.startswith("_")]
    check_names(names, ours)
    for name in names:
        theirs_method = getattr(type(theirs), name, None)
        if inspect.isfunction(theirs_method) and theirs_method.__module__.startswith("transformers"):
            assert set(parameters(theirs_method)) <= set(parameters(getattr(type(ours), name))), name
    check_arguments(wb.BatchEncoding, parameters(type(theirs)))
    with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
        wb.BatchEncoding({}, x=1)  # type: ignore[arg-type]
    assert set(BATCH_ENCODING_ARGUMENTS) <= set(parameters(type(theirs)))


def test_rows_for_decode_and_one_row_for_batch_decode() -> None:
    tok = tokenizer()
    row = tok.encode("the cat").ids
    for rows in ([row], [tuple(row)], tok(["the cat"])["input_ids"], tok.encode_batch(["the cat"])):
        with pytest.raises(InputError, match=r"use decode_batch\(rows\)"):
            tok.decode(rows)  # type: ignore[arg-type]
    for decode in (tok.decode_batch, tok.batch_decode):
        with pytest.raises(InputError, match=r"one row of ids is for decode\(ids\)"):
            decode(row)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'ids'"):
        tok.decode()
    with pytest.raises(TypeError, match=r"Tokenizer\.encode\(\) got an unexpected keyword argument 'max_len'"):
        tok.encode("a", max_len=3)  # type: ignore[arg-type]


def test_tokenizers_are_fast() -> None:
    assert tokenizer().is_fast


# --- models


def source(path: str) -> ast.Module:
    found = importlib.util.find_spec("transformers")
    if found is None or found.origin is None:
        pytest.skip("transformers is not installed")
    return ast.parse((Path(found.origin).parent / path).read_text(encoding="utf-8"))


def members(path: str, name: str) -> Iterator[ast.stmt]:
    """Return the statements of a class."""
    found = next(node for node in source(path).body if isinstance(node, ast.ClassDef) and node.name == name)
    return iter(found.body)


def names_of(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def function(path: str, kind: str, name: str) -> ast.FunctionDef:
    return next(node for node in members(path, kind) if isinstance(node, ast.FunctionDef) and node.name == name)


def arguments(node: ast.FunctionDef) -> list[str]:
    return [one.arg for one in (*node.args.args, *node.args.kwonlyargs) if one.arg not in ("self", "cls")]


def popped(node: ast.FunctionDef) -> list[str]:
    """Return the names that a function takes out of its ``kwargs``."""
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)]
    taken = [one for one in calls if ast.unparse(one.func) == "kwargs.pop" and isinstance(one.args[0], ast.Constant)]
    return [name for one in taken if not (name := str(one.args[0].value)).startswith("_")]  # type: ignore[attr-defined]


MODELING = "modeling_utils.py"


@pytest.fixture(scope="module")
def model() -> bert.BertModel:
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    return bert.BertModel.from_config(bert.BertConfig(vocab_size=10, **sizes))


def test_attributes_of_models(model: bert.BertModel) -> None:
    places = [(MODELING, kind) for kind in ("PreTrainedModel", "ModuleUtilsMixin", "EmbeddingAccessMixin")]
    places += [("utils/hub.py", "PushToHubMixin"), ("integrations/peft.py", "PeftAdapterMixin")]
    names = {name for place in places for node in members(*place) for name in names_of(node) if name[0] != "_"}
    names -= {"base_model"}  # here an attribute of models with a head
    # of torch.nn.Module
    names |= {"parameters", "named_parameters", "state_dict", "modules", "named_modules", "children", "cpu", "double"}
    assert len(names) > 80
    check_names(sorted(names), model)


def test_arguments_of_models(model: bert.BertModel) -> None:
    loading = function(MODELING, "PreTrainedModel", "from_pretrained")
    names = [*arguments(loading), *popped(loading), "attn_implementation", "num_labels", "output_attentions"]
    for call in (bert.BertModel.from_pretrained, bert.AutoModel.from_pretrained, bert.AutoModel.base_from_pretrained):
        check_arguments(call, names)
    saving = function(MODELING, "PreTrainedModel", "save_pretrained")
    check_arguments(model.save_pretrained, [*arguments(saving), *popped(saving)])
    path = "models/bert/modeling_bert.py"
    options = [name for node in members("utils/generic.py", "TransformersKwargs") for name in names_of(node)]
    check_arguments(model, [*arguments(function(path, "BertModel", "forward")), *options, "return_dict"])
    for table in (MODEL_LOADING, MODEL_SAVING, MODEL_CALL):
        assert all(table.values())


def test_arguments_of_models_with_a_head() -> None:
    path = "models/bert/modeling_bert.py"
    for node in source(path).body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("BertFor") and hasattr(bert, node.name):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "forward":
                    own = parameters(getattr(bert, node.name).__call__)
                    assert set(arguments(method)) <= {*own, *MODEL_CALL}, node.name

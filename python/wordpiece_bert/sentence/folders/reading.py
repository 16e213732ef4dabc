"""How the files of a folder of sentence-transformers are read: the list of its modules, and single settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from wordpiece_bert._internal.safe_json import JsonObject, inside, quoted, read_json, read_object
from wordpiece_bert.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: The kinds of routers; ``Asym`` is in old folders.
ROUTERS = ("Router", "Asym")

#: Files with the settings of a Transformer, the first of which is read. Old versions named them after the model type.
TRANSFORMER_CONFIGS = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)


def list_modules(listing: Path, supported: Sequence[str] | None, others: Sequence[str] = ()) -> list[tuple[str, Path]]:
    """Read ``modules.json``: the kind and the folder of each module.

    Parameters
    ----------
    listing
        The file.
    supported
        The kinds of sentence-transformers that are supported; None accepts any.
    others
        Classes of other packages that are supported, by their complete names.

    Raises
    ------
    ConfigError
        The file is malformed, or a module is of another kind.
    """
    entries = read_json(listing, ConfigError)
    if not isinstance(entries, list):
        refuse(listing, "must be a list of modules")
    modules = []
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
            refuse(listing, f"module {i} must be an object with a type, not {quoted(entry)}")
        package, _, kind = entry["type"].rpartition(".")
        known = package.partition(".")[0] == "sentence_transformers" and (supported is None or kind in supported)
        if supported is not None and not known and entry["type"] not in others:
            names = ", ".join(supported)
            refuse(listing, f"module {i} is a {quoted(entry['type'])}; supported are sentence_transformers' {names}")
        path = setting(entry, "path", str, listing, default="")
        modules.append((kind, inside(listing.parent, path, str(listing), ConfigError)))
    return modules


def router_file(folder: Path) -> Path:
    """Return the configuration of a router, which is ``config.json`` for an Asym."""
    file = folder / "router_config.json"
    return file if file.is_file() else folder / "config.json"


def token_weights_file(folder: Path) -> Path | None:
    """Return the file of a SparseStaticEmbedding that has weights by the names of tokens; None if it has a tensor."""
    file = folder / "config.json"
    path = setting(read_object(file, ConfigError) if file.is_file() else {}, "path", str, file)
    return inside(folder, path, str(file), ConfigError) if path is not None and path.endswith(".json") else None


def setting(config: JsonObject, key: str, kind: type, file: Path, *, default: Any = None) -> Any:
    """Return a field, checked to have exactly this type; the default if it is absent or null."""
    value = config.get(key)
    if value is None:
        return default
    if type(value) is not kind:  # isinstance would accept a bool as an int
        refuse(file, f"{key} is {quoted(value)}, expected {kind.__name__}")
    return value


def expect(config: JsonObject, key: str, only: str, file: Path) -> None:
    """Raise a `ConfigError` if a field is present and is not the only value that is supported."""
    value = config.get(key)
    if value is not None and value != only:
        refuse(file, f"{key} is {quoted(value)}; only {only!r} is supported")


def refuse(file: Path, what: str) -> NoReturn:
    """Raise a `ConfigError` about a file."""
    raise ConfigError(f"{file}: {what}")

"""Data for evaluators from files: folders in the form of BEIR."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wordpiece_bert._internal.checks import finite_or_none
from wordpiece_bert._internal.texts import is_missing, text_problem
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.table_reader import read_columns, read_table

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

#: The endings of tables that are read.
_SUFFIXES = (".jsonl", ".ndjson", ".parquet", ".tsv", ".csv", ".tsv.gz", ".csv.gz", ".tsv.zst", ".csv.zst")


class Judged(NamedTuple):
    """Queries, documents and judgements, as `InformationRetrievalEvaluator` takes them.

    Examples
    --------
    >>> from wordpiece_bert.evaluation import InformationRetrievalEvaluator, Judged
    >>> judged = Judged(
    ...     {"q1": "bake bread"},
    ...     {"d1": "bread dough", "d2": "a bicycle"},
    ...     {"q1": {"d1": 1.0}},
    ... )
    >>> evaluator = InformationRetrievalEvaluator(*judged)
    """

    #: The queries by id.
    queries: dict[str, str]
    #: The documents by id: title and text.
    corpus: dict[str, str]
    #: The grades of documents by the id of the query, and of the document.
    relevant_docs: dict[str, dict[str, float]]


def read_beir(folder: str | os.PathLike[str], split: str = "test") -> Judged:
    r"""Read queries, documents and judgements from a folder in the form of BEIR (Thakur et al. 2021).

    Parameters
    ----------
    folder : str or os.PathLike
        A folder with ``corpus.jsonl`` (``_id``, ``text`` and optionally ``title``, which goes before the text),
        ``queries.jsonl`` (``_id``, ``text``) and ``qrels/SPLIT.tsv`` (``query-id``, ``corpus-id``, ``score``). The
        tables may also be TSV, CSV or Parquet files.
    split : str, default "test"
        The name of the judgements.

    Returns
    -------
    Judged
        The queries, the documents and the grades above 0 of the split, by ids, which are str. Queries without
        judgements are left out; a judged document that is not in the corpus is kept, as one that no search finds.

    Raises
    ------
    InputError
        A file is missing or malformed, an id occurs twice, or no judgement is of a query and a document of the folder.

    Examples
    --------
    >>> import json
    >>> from pathlib import Path
    >>> from wordpiece_bert.evaluation import read_beir
    >>> folder = Path("beir")
    >>> (folder / "qrels").mkdir(parents=True)
    >>> _ = (folder / "corpus.jsonl").write_text(
    ...     json.dumps({"_id": "d1", "title": "Bread", "text": "It rises."})
    ... )
    >>> _ = (folder / "queries.jsonl").write_text(
    ...     json.dumps({"_id": "q1", "text": "bake bread"})
    ... )
    >>> _ = (folder / "qrels" / "test.tsv").write_text(
    ...     "query-id\tcorpus-id\tscore\nq1\td1\t1\n"
    ... )
    >>> judged = read_beir("beir")
    >>> judged.queries, judged.corpus, judged.relevant_docs
    ({'q1': 'bake bread'}, {'d1': 'Bread It rises.'}, {'q1': {'d1': 1.0}})
    """
    home = Path(folder)
    if not home.is_dir():
        raise InputError(f"{home}: there is no such folder")
    judgements = read_columns(_table(home / "qrels", split), ["query-id", "corpus-id", "score"])
    documents = _texts(_table(home, "corpus"), title=True)
    queries = _texts(_table(home, "queries"))
    grades: dict[str, dict[str, float]] = {}
    unknown = 0
    for query, document, score in zip(*judgements.values(), strict=True):
        grade = finite_or_none(score)
        if grade is None:
            raise InputError(f"{home}, qrels/{split}: the score {score!r} is no finite number")
        unknown += str(query) not in queries or str(document) not in documents
        if str(query) in queries and grade > 0:
            grades.setdefault(str(query), {})[str(document)] = grade
    if not any(document in documents for judged in grades.values() for document in judged):
        raise InputError(
            f"{home}: no judgement of qrels/{split} above 0 is of a query and a document of the folder; {unknown} of "
            f"{len(judgements['score'])} have an id that is not there"
        )
    return Judged({query: queries[query] for query in queries if query in grades}, documents, grades)


def _table(folder: Path, name: str) -> Path:
    """Return the file of a table, whatever its ending."""
    for suffix in _SUFFIXES:
        if (folder / f"{name}{suffix}").is_file():
            return folder / f"{name}{suffix}"
    raise InputError(f"{folder}: there is no {name}{' or '.join((_SUFFIXES[0], *_SUFFIXES[2:5]))}")


def _id_problem(value: Any) -> str | None:
    """Return what is wrong with a value as an id; a number is one too, as a JSON file may have it."""
    known = isinstance(value, str | int) and not isinstance(value, bool)
    return None if known else f"an id must be a str or a whole number, not {value!r:.80}"


def _title_problem(value: Any) -> str | None:
    return None if isinstance(value, str) or is_missing(value) else f"the title must be a str, not {value!r:.80}"


def _texts(file: Path, *, title: bool = False) -> dict[str, str]:
    """Return the texts of a table by id, with the titles before them, where there are any."""
    checks: dict[str, Callable[[Any], str | None]] = {"_id": _id_problem, "text": text_problem}
    found, _ = read_table(file, list(checks), checks={**checks, "title": _title_problem}, optional=["title"] * title)
    ids, texts = [str(one) for one in found["_id"]], found["text"]
    if title:
        titles = ["" if is_missing(head) else head for head in found["title"]]
        texts = [f"{head} {text}".strip() for head, text in zip(titles, texts, strict=True)]
    by_id = dict(zip(ids, texts, strict=True))
    if len(by_id) < len(ids):
        twice = next(one for row, one in enumerate(ids) if one in ids[:row])
        raise InputError(f"{file}: the id {twice!r} occurs twice")
    return by_id

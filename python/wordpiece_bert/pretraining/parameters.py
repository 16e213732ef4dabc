"""What the options of token stores and examples mean, and what values they take: for docstrings and the command.

It imports nothing of NumPy, so that the command can read it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from wordpiece_bert._internal.parameters import Parameters

Objective: TypeAlias = Literal["nsp", "sop", "full-sentences", "doc-sentences", "blocks", "text"]
DocumentRule: TypeAlias = Literal["blank-line", "line", "file"]
SentenceRule: TypeAlias = Literal["lines", "split"]
OnError: TypeAlias = Literal["strict", "replace", "skip"]
StoredIds: TypeAlias = Literal["uint16", "uint32"]

#: What rows are made for.
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
#: The name of the label of each objective that has one: the objectives with pairs.
PAIR_LABELS = {"nsp": "next_sentence_label", "sop": "sentence_order_label"}
DOCUMENTS: tuple[DocumentRule, ...] = get_args(DocumentRule)
SENTENCES: tuple[SentenceRule, ...] = get_args(SentenceRule)
ERRORS: tuple[OnError, ...] = get_args(OnError)
ID_TYPES: tuple[StoredIds, ...] = get_args(StoredIds)
#: The default of `shard_tokens`: 2²⁸ tokens, half a gigabyte of uint16.
SHARD_TOKENS = 1 << 28

#: How documents are read, and how they are stored.
STORING = Parameters(
    """
    documents : {"blank-line", "line", "file"}, default "blank-line"
        A document is the lines up to a blank one or the end of the file, one line, or one file.
    sentences : {"lines", "split"}, default "lines"
        A sentence is a line, or what ends in a line with ``.``, ``!``, ``?`` or a character like them. Splitting
        knows English abbreviations only, never ends a sentence after ``No.``, and cuts ``U.S. Army``.
    abbreviations : iterable of str, optional
        Words after which a full stop ends no sentence, in lower case without the stop; they replace the built-in list.
    field : str, optional
        The files are JSON lines with a document in this field (``"text"``, ``"meta.title"``); its lines are sentences.
    column : str, optional
        The files are CSV, TSV or Parquet with a document in this column. Parquet needs pyarrow.
    id_field : str, optional
        The field with the id of each document, a whole number or a string. By default ids are made of the numbers of
        the file and of the document in it.
    id_column : str, optional
        The column with the id of each document, a whole number or a string.
    dtype : {"uint16", "uint32"}, optional
        The type of ids, by default uint16 if all ids of the tokenizer fit it.
    shard_tokens : int, default 2**28
        A shard ends after the document with which it has this many tokens.
    part : (int, int), optional
        ``(i, n)`` takes the files i, i + n, i + 2n, … of the list, with the document ids of the whole: for n machines,
        whose stores `merge_token_stores` joins.
    errors : {"strict", "replace", "skip"}, default "strict"
        Stop at a text that cannot be read, replace its invalid bytes, or skip it; as in `Tokenizer.encode_files`.
        Skipped ones are counted.
    """
)

#: What rows are made of documents.
ROWS = Parameters(
    """
    objective : {"nsp", "sop", "full-sentences", "doc-sentences", "blocks", "text"}, default "nsp"
        How rows are made: pairs of segments of which the second is random (BERT) or swapped with the first (ALBERT) in
        half of the rows; sentences that fill a row, across documents (RoBERTa) or of one document; rows of equal
        length; or a document a row, cut.
    max_length : int, default 128
        The largest number of tokens of a sequence, special ones included.
    short_seq_prob : float, default 0.1
        The share of pairs that aim at a random smaller number of tokens; inputs at inference time are rarely full.
    min_sentences : int, default 1
        The sentences that a pair with a next-sentence label is made of at least, where the document has as many. With
        1, as in BERT, a long sentence alone forces a random second segment.
    packing : bool or int, default False
        Put several sequences in a row of `max_length` tokens (True) or of this many.
    packing_window : int, default 4096
        The number of sequences that are packed together.
    max_sequences_per_row : int, optional
        The largest number of sequences in a packed row.
    dupe_factor : int, default 1
        The number of passes over the documents, each with other random choices.
    masking : Masking, optional
        Mask rows now. By default `PretrainingDataset` masks them when they are read.
    seed : int, default 0
        The seed of all random choices, from 0 to 2⁶⁴ - 1.
    """
)

#: How a call runs.
RUN = Parameters(
    """
    tokenizer : Tokenizer
        The tokenizer.
    threads : int, optional
        Number of threads; by default all CPUs that this process may use. The bytes do not depend on it.
    """
)

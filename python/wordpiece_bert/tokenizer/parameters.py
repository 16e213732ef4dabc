"""What the parameters mean that tokenizers, readers of files and the training of vocabularies share.

Docstrings are completed from these tables, and commands take their help texts from them; nothing here imports NumPy.
"""

from __future__ import annotations

from wordpiece_bert._internal.parameters import Parameters

#: How texts are encoded, in the words of all encoding methods.
ENCODING = Parameters(
    """
    is_split_into_words : bool, default False
        Each text is a list of words. Word ids are then the indices of the list, and offsets are relative to the word.
    add_special_tokens : bool, default True
        Add the special tokens of the post-processor's template to each text.
    truncation : bool or {"longest_first", "only_first", "only_second", "do_not_truncate"}, optional
        Truncate texts: True means ``"longest_first"``. By default the setting of the tokenizer's file; if it has
        none, texts are truncated if `max_length` is given and ``padding`` is not.
    max_length : int, optional
        The maximum length of a row in tokens, special tokens included. By default the setting of the tokenizer's file,
        or else `Tokenizer.model_max_length`.
    stride : int, optional
        How many tokens consecutive windows of a text share. By default the setting of the tokenizer's file, or 0.
    truncation_side : {"right", "left"}, optional
        The side on which tokens are removed. By default `Tokenizer.truncation_side`.
    padding : bool or {"longest", "max_length", "do_not_pad"}, optional
        Pad rows: True means ``"longest"``, the longest row of the batch. By default the setting of the tokenizer's
        file, or no padding.
    pad_to_multiple_of : int, optional
        Round the padded length up to a multiple of this. By default the setting of the tokenizer's file, or 1.
    padding_side : {"right", "left"}, optional
        The side of padding. By default `Tokenizer.padding_side`.
    offset_unit : {"char", "byte", "utf16"}, default "char"
        The unit of offsets: characters, UTF-8 bytes, or UTF-16 code units.
    encode_special_tokens : bool, default False
        Encode special tokens that occur in a text as ordinary text.
    return_offsets, return_word_ids, return_sequence_ids : bool, default False
        Compute these fields of `RaggedBatch` too.
    return_overflowing_tokens : bool, default False
        Add the further windows of a truncated text as rows after its first.
    return_n_tokens : bool, default False
        Count the tokens of each text before truncation.
    threads : int, optional
        Number of threads. By default the number set with `set_num_threads`, or else all CPUs that this process may
        use.
    """
)

#: How texts are encoded to model inputs, where the call differs from the other methods, as transformers does.
CALLING = Parameters(
    """
    padding : bool or {"longest", "max_length", "do_not_pad"}, default False
        Pad rows: True means ``"longest"``, the longest row of the batch.
    truncation : bool or {"longest_first", "only_first", "only_second", "do_not_truncate"}, optional
        Truncate texts: True means ``"longest_first"``. By default texts are truncated if `max_length` is given and
        `padding` is not.
    max_length : int, optional
        The maximum length of a row in tokens, special tokens included; by default `Tokenizer.model_max_length`.
    stride : int, default 0
        How many tokens consecutive windows of a text share.
    pad_to_multiple_of : int, optional
        Round the padded length up to a multiple of this. With truncation, `max_length` must be a multiple of it.
    return_token_type_ids, return_attention_mask : bool, optional
        By default those that the model accepts: both, unless its folder says otherwise.
    dtype : dtype_like, default "int64"
        The type of the arrays, int64 or int32.
    """
)

#: How the texts of files are read.
READING = Parameters(
    r"""
    files : path, or iterable of paths
        The files; ``-`` is standard input. Gzip and Zstandard are decompressed.
    separator : str or None, default "\n"
        What texts end with. ``"\n"`` includes a ``\r`` before it, and no other character ends a line; any other
        separator is matched literally. None reads each file as one text.
    field : str or (str, str), optional
        The files are JSON lines with the text in this field: a key, or keys joined by dots (``meta.title``,
        ``answers.0``; a dot inside a key is written ``\.``). Two fields make pairs. Blank lines are ignored.
    column : str or (str, str), optional
        The files are CSV, TSV or Parquet with the texts in this column; two columns make pairs. The names of ``.csv``
        and ``.tsv`` files say what they are, also if they are compressed; all others are Parquet, which needs pyarrow.
    errors : {"strict", "replace", "skip"}, default "strict"
        What to do with a text that cannot be read: invalid UTF-8, a line that is not JSON, a record of a table with
        wrong quotation marks, a field or value that is missing or not text; or with a file that looks like UTF-16,
        which is valid UTF-8 with NULs. ``"strict"`` raises an error with its file, line and byte offset, or row.
        ``"replace"`` replaces invalid UTF-8 by U+FFFD, and raises for the rest. ``"skip"`` skips and counts such texts;
        a file in UTF-16 counts as one.
    show_progress_bar : bool, optional
        By default a bar is shown if standard error is a terminal. True shows plain lines elsewhere.
    """
)

#: How texts are normalized.
NORMALIZING = Parameters(
    """
    lowercase : bool, default True
        Convert texts to lower case.
    strip_accents : bool, optional
        Remove combining marks after decomposition. Defaults to the value of `lowercase`.
    clean_text : bool, default True
        Remove control characters, and replace every white space character by a space.
    tokenize_chinese_chars : bool, default True
        Treat every Chinese ideograph as a word.
    """
)

#: What finds the words of a text, where the tokenizer of a folder does not.
SPLITTING = Parameters(
    """
    word_splitter : callable, optional
        For Japanese models whose words MeCab, Sudachi or Juman++ finds: a function from a text to the list of its
        words, as with fugashi ``lambda text: [word.surface for word in tagger(text)]``. The text is normalized before,
        as the folder says, and has no special tokens. Such a tokenizer has no offsets and no word ids, so that what
        needs places in a text refuses it. It is pickled only if the function can be.
    """
)

#: How words are split into pieces of a vocabulary.
PIECES = Parameters(
    """
    unk_token, cls_token, sep_token, pad_token, mask_token : str
        The special tokens; by default ``[UNK]``, ``[CLS]``, ``[SEP]``, ``[PAD]`` and ``[MASK]``. The vocabulary must
        have `unk_token`, and may have the others.
    continuing_subword_prefix : str, default "##"
        The prefix of a piece that continues a word.
    max_input_chars_per_word : int, default 100
        A word of more characters becomes `unk_token`.
    """
)

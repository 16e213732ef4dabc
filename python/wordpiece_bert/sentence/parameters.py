"""What the parameters mean that several encoders have."""

from __future__ import annotations

from wordpiece_bert._internal.parameters import Parameters

#: What is given when an encoder is made, besides how its model is loaded (`wordpiece_bert.bert.parameters.LOADING`).
SETTINGS = Parameters(
    """
    prompts : dict, optional
        Prompts by name. They replace those of the folder that have the same names.
    default_prompt_name : str, optional
        The name of the prompt that is used by default; by default that of the folder, if any.
    similarity_fn_name : {"cosine", "dot", "euclidean", "manhattan"}, optional
        How `similarity` compares vectors; by default as the folder says.
    truncate_dim : int, optional
        How many of the first numbers of each vector `encode` keeps by default; by default as the folder says, or all.
    """
)

#: What sentence-transformers needs to bound memory.
CHUNKS = Parameters(
    """
    query_chunk_size, corpus_chunk_size : int
        Not needed here: the scores that are in memory at once are bounded.
    """
)

#: What a call is given that turns texts into vectors.
ENCODING = Parameters(
    """
    texts : str, iterable of str or column of strings
        A text, a list or another iterable of texts, an array, or an Arrow column.
    prompt_name : str, optional
        The name of the model's prompt to put before each text; by default the model's default prompt, if any.
    prompt : str, optional
        The prompt itself; `prompt_name` is then ignored.
    batch_size : int, default 32
        The most texts that go through the NumPy engine at once, sorted by length to reduce padding. The Rust engine
        ignores it for the vectors of texts: it runs texts without padding, in bounded memory.
    show_progress_bar : bool, optional
        Whether to show a progress bar on standard error: on a terminal a bar, elsewhere a line now and then.
    convert_to_numpy : bool, default True
        Whether the vectors of texts are one array [n, d], rather than a list of arrays [d].
    convert_to_tensor : bool, default False
        Whether to return tensors of PyTorch, which share the memory of the arrays.
    device : {"cpu"}, optional
        The device of the model, which is always the CPU.
    normalize_embeddings : bool, default False
        Whether to scale the vectors to length 1, after `truncate_dim`.
    truncate_dim : int, optional
        How many of the first numbers of each vector to keep; by default the model's setting, or all.
    pool : None
        sentence-transformers passes texts to a pool of processes; here one process uses all CPUs, see `threads`.
    sentences, inputs : str, iterable of str or column of strings
        Other names of `texts`, of sentence-transformers.
    return_truncated : bool, default False
        Whether to also return which texts were truncated.
    """
)

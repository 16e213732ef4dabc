"""What the parameters mean that models, heads and engines share; nothing here imports NumPy."""

from __future__ import annotations

from wordpiece_bert._internal.parameters import Parameters

#: How a model is found, loaded and run.
LOADING = Parameters(
    """
    name : str or os.PathLike
        ``"minilm"``, a folder with ``config.json`` and weights, or ``"org/name"`` in the local Hugging Face cache.
    backend : {"rust", "numpy"}, default "rust"
        The engine. ``"numpy"`` computes the same formulas in NumPy, several times slower.
    dtype : {"float32", "bfloat16", "int8", "auto"}, default "float32"
        The numbers that are multiplied, ``"float32"``, ``"bfloat16"``, ``"int8"``, or ``"auto"`` for the fastest on
        this CPU that keeps a cosine of 0.9999 to float32. Of a file with int8 weights, ``"auto"`` takes these, the only
        dtype that it has. Sums are float32, and the NumPy engine has ``"float32"`` alone. ``"bfloat16"`` rounds the
        weights to 8 significant bits and, where the CPU multiplies such numbers faster than float32, the other factors
        as well; in ``"int8"`` weights and inputs are int8 numbers with a scale for each 64 of them, but for one or two
        inputs of a layer that are far larger than the others. `Model.engine` has the reason for what ``"auto"`` took.
    revision : str, optional
        Branch, tag or commit of a model in the Hugging Face cache.
    download : bool, default False
        Download a model that is not in the Hugging Face cache, with huggingface_hub.
    check_finite : bool, default False
        Whether to refuse weights that are NaN or infinite.
    new_head : int, optional
        A seed to draw the weights of the head with, if the file has none of them (as that of an encoder only).
    calibrate : sequence of str, optional
        For ``dtype="int8"``: texts that the model is run over once, in float32, to see how large the inputs of its
        layers are; a few dozen like those it is for. By default 32 texts in many languages that the package has. The
        result is the same each time. A file that has int8 weights already takes none.
    instructions : str, optional
        The instruction set of the Rust engine, one that the CPU has: ``"scalar"``, ``"avx2"``, ``"avx512"``, ``"amx"``
        or ``"neon"``. By default the environment variable ``WORDPIECE_BERT_INSTRUCTION_SET`` of the process, or else
        the best. Vectors in bfloat16, and in int8 with ``"amx"``, depend on it in their last bits; others do not.
    device : {"cpu"}, optional
        The device of the model, which is always the CPU.
    threads : int, optional
        How many threads the tokenizer and the Rust engine use; by default as many as this process may use. The NumPy
        engine uses the threads of its BLAS library.
    """
)

#: What a model is called with: B rows of S tokens, word vectors of width E.
INPUTS = Parameters(
    """
    input_ids : array_like, optional
        Token ids, integers [B, S]; or instead ``inputs_embeds``.
    attention_mask : array_like, optional
        Numbers or booleans [B, S]: a token is visible where they are not 0. By default all tokens are visible. Every
        row needs at least one.
    token_type_ids : array_like, optional
        0 for the first segment, 1 for the second, [B, S]; 0 by default.
    position_ids : array_like, optional
        [B, S] or [1, S]; 0 to S − 1 by default, even if a row is padded on the left.
    inputs_embeds : array_like, optional
        Word vectors instead of `input_ids`, floats [B, S, E]. E is the width of the word table: H, except in variants
        with a projection.
    labels : array_like, optional
        The labels, as the class documents them; with them the output has a loss.
    output_hidden_states, output_attentions : bool, default False
        Whether to return the output of each layer, and its attention weights.
    threads : int, optional
        How many threads the Rust engine uses; by default those of `set_num_threads`. The NumPy engine uses the threads
        of its BLAS library.
    """
)

#: What an engine prepares.
PREPARING = Parameters(
    """
    config : BertConfig
        Sizes and settings.
    weights : mapping
        float32, with the names and shapes of `checkpoint.bert_shapes`. Those in a file
        (`wordpiece_bert.bert.stored_tensor`) are read when they are needed, and not kept twice.
    calibration : sequence or callable, optional
        Rows of ids that a model is run over in float32 before it is quantized, or a function that returns them; by
        default random ones.
    instruction_set : str, optional
        One of `_core.kernel_instruction_sets()`; by default the best that the CPU supports.
    """
)

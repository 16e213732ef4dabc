"""What the parameters mean that several functions and classes of training have, and the commands."""

from __future__ import annotations

from wordpiece_bert._internal.parameters import Parameters

#: The arguments of trainers.
TRAINER = Parameters(
    """
    folder : path
        The checkpoint.
    model : Model
        The model to start from; it does not change.
    args : TrainingArguments
        The settings.
    train_dataset : Dataset, optional
        Rows by number, such as a list of dicts with ``input_ids`` and labels. If they have a method ``set_epoch``, it
        is called before each epoch with its number.
    eval_dataset : Dataset, optional
        Rows for `evaluate`.
    data_collator : function, optional
        A function from a list of rows to a batch; `pad_collate` by default.
    compute_metrics : function, optional
        A function from an `EvalPrediction` to a dict of metrics.
    tokenizer : Tokenizer, optional
        Written with the model by `save_model` and into checkpoints.
    loss_head : function, optional
        A function from the model's `wordpiece_bert.finetune.network.Network` to the training side of its head, a
        `wordpiece_bert.finetune.heads.Head`, for another loss than that of the model's class.
    """
)

#: What loads a model to start from, and fits a head to its vectors.
FITTING = Parameters(
    """
    model : str or path
        The model to start from: a name or a folder, as for `wordpiece_bert.hub.find_model`.
    name : str or path
        A model's name or folder, as for `wordpiece_bert.hub.find_model`.
    config : BertConfig
        The sizes.
    pairs : bool
        Whether rows are pairs with a label.
    backend : {"rust", "numpy"}, default "rust"
        The engine that computes.
    seed : int, default 42
        Determines the weights that are drawn.
    texts : iterable of str, or of pairs
        The texts. A pair is a tuple of two texts, or a dict with ``text`` and ``text_pair``.
    batch_size : int, default 32
        Rows that go through the encoder at once.
    args : TrainingArguments
        The settings.
    C : float, default 1.0
        The inverse strength of the penalty, as in `LogisticRegression`.
    cache : path, optional
        A folder in which the vectors are kept, as by `finetune.cached_vectors`.
    download : bool, default False
        Whether to download a model that is not in the Hugging Face cache.
    show_progress_bar : bool, optional
        Whether to show progress; by default on a terminal only.
    """
)

#: The settings of a training.
ARGUMENTS = Parameters(
    """
    output_dir : str or os.PathLike
        The folder of the checkpoints, ``checkpoint-STEP`` each.
    learning_rate : float, default 5e-5
        The largest learning rate.
    per_device_train_batch_size : int, default 16
        Rows of a micro-batch.
    per_device_eval_batch_size : int, default 32
        Rows of a batch in evaluation.
    num_train_epochs : float, default 3
        Passes over the data.
    max_steps : int, default -1
        Steps of the optimizer; they count instead of `num_train_epochs`. -1 for no limit.
    warmup_steps : float, default 0
        Steps in which the learning rate grows; below 1, a share of all steps.
    weight_decay : float, default 0.01
        The decay λ of all parameters but biases and norms.
    adam_beta1, adam_beta2, adam_epsilon : float
        β₁, β₂ and ε, 0.9, 0.999 and 1e-8 by default.
    max_grad_norm : float, default 1.0
        The norm to which gradients are clipped; 0 for none.
    lr_scheduler_type : {"linear", "cosine", "constant", "constant_with_warmup"}, default "linear"
        How the learning rate changes after the warm-up.
    gradient_accumulation_steps : int, default 1
        Micro-batches of a step; the gradient is that of the mean of their losses, or of all their tokens
        (`average_tokens_across_batches`).
    optim : {"adamw", "adam_weight_decay"}, default "adamw"
        AdamW as in torch, or the optimizer of Google's BERT, which does not correct the bias of the moments.
    seed : int, default 42
        Determines the order of the data and dropout.
    train_sampling_strategy : {"random", "sequential", "group_by_length"}, default "random"
        The order of the rows in each epoch; by length, rows of about one length are together.
    batch_sampler : {"batch_sampler", "no_duplicates"}, default "batch_sampler"
        How rows in that order make batches: ``"batch_sampler"`` takes them as they come; with ``"no_duplicates"`` no
        text (for rows with ``input_ids``, no row) is in two rows of a batch, as losses need that take the other rows of
        a batch for negatives. An epoch has as many batches with both; a row that finds no place in them is left out of
        it, with a warning that has the number of such rows.
    average_tokens_across_batches : bool or None, default None
        Whether each labelled token counts the same in the loss of a step with several micro-batches, whichever of them
        it is in; otherwise each micro-batch does. None means that it does for heads of masked tokens, as in
        transformers for models whose loss is given the number of tokens (ModernBERT). True needs a head whose labels
        are those of tokens. In evaluations each token always counts the same.
    eval_strategy : {"no", "steps", "epoch"}, default "no"
        When the model is evaluated.
    eval_steps : int, default 500
        Steps between two evaluations.
    save_strategy : {"no", "steps", "epoch"}, default "steps"
        When a checkpoint is saved.
    save_steps : int, default 500
        Steps between two checkpoints.
    save_total_limit : int or None, default None
        How many checkpoints stay; None for all. The best one stays in any case.
    logging_steps : int, default 10
        Steps between two entries of the history.
    load_best_model_at_end : bool, default False
        Whether the parameters of the best evaluation are restored at the end. A checkpoint is then also saved after
        each evaluation that is the best so far.
    metric_for_best_model : str, default "loss"
        The metric that decides. A value that is not finite is never the best.
    greater_is_better : bool or None, default None
        Whether the highest value of it is best, not the lowest; None means that it is, unless the name ends in
        ``loss``, or the metric is the primary one of an evaluator that says otherwise.
    early_stopping_patience : int or None, default None
        After how many evaluations without progress the training ends; it is then complete, also when it is resumed.
    gradient_checkpointing : bool, default False
        Keep only the input of each layer: a third more time, a tenth of the memory, the same numbers.
    bf16 : bool, default False
        Multiply numbers rounded to bfloat16 in the encoder. Parameters, gradients, moments and sums are float32. It is
        faster on CPUs with instructions for it, and needs a model with ``backend="rust"``.
    freeze : tuple of str, default ()
        Parameters that are not trained, by parts of their names: ``"embeddings"``, ``"encoder.layer.0"``.
    show_progress_bar : bool or None, default None
        Whether to show progress: a bar on a terminal, lines elsewhere; None for a terminal only.
    overwrite_output_dir : bool, default False
        Whether a training that begins anew removes the checkpoints that are in `output_dir`; without it, they are an
        error.
    log_file : str or os.PathLike, optional
        A file to which each entry of the history is appended when it is made, a line of JSON. A training that begins
        anew, or resumes from a checkpoint, first replaces it by the history up to there.
    """
)

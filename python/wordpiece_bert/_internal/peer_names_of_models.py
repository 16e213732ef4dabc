"""Names of transformers' models, which are modules of torch, and what to use instead."""

from __future__ import annotations

from typing import Final

_ARRAYS = "named_parameters() has the weights as arrays"
_CHANGES = "a model never changes: its class, called with config and arrays, makes another one"
_TRAINING = "wordpiece_bert.finetune.Trainer trains a copy"
_NEVER_TRAINS = "a model never trains: leave it out"
_CPU = "this package computes on the CPU: leave it out"
_DTYPE = "the number type is chosen when the model is loaded: dtype='float32', 'bfloat16', 'int8' or 'auto'"
_ENGINE = "backend= of from_pretrained chooses the engine, which chooses its kernels; engine describes it"
_INSIDE = "wordpiece_bert.inspect shows what a model computes inside, and changes it"
_NO_TEXT = "encoders generate no text"
_ADAPTERS = "adapters are not read: merge them into the model first, and save it"
_BASE = "the class without a head, such as BertModel, loads the encoder of a folder with one"
_NO_RAW = "weights and their names are fixed when the model is made"
_ONE_PROCESS = "a model runs in one process"

#: What to use instead of an attribute of a model, by name.
INSTEAD_IN_MODELS: Final = {
    "forward": "call the model, as in model(input_ids)",
    # weights
    **dict.fromkeys(("parameters", "state_dict", "get_parameter", "get_parameter_or_buffer"), _ARRAYS),
    **dict.fromkeys(("get_input_embeddings", "get_output_embeddings", "get_position_embeddings"), _ARRAYS),
    **dict.fromkeys(("buffers", "named_buffers", "get_buffer", "named_non_persistent_buffers"), _ARRAYS),
    **dict.fromkeys(("load_state_dict", "set_input_embeddings", "set_output_embeddings"), _CHANGES),
    **dict.fromkeys(("resize_token_embeddings", "resize_position_embeddings", "set_encoder", "set_decoder"), _CHANGES),
    **dict.fromkeys(("register_buffer", "register_parameter", "register_module", "add_module"), _CHANGES),
    **dict.fromkeys(("init_weights", "initialize_weights", "post_init"), "from_config(config) draws weights"),
    **dict.fromkeys(("tie_weights", "get_expanded_tied_weights_keys", "mark_tied_weights_as_initialized"), _NO_RAW),
    **dict.fromkeys(("retrieve_modules_from_names", "get_init_context"), _NO_RAW),
    "get_memory_footprint": "num_parameters() counts the weights, and dtype says how long each is",
    "dequantize": "load the folder with another dtype=",
    # training
    **dict.fromkeys(("train", "requires_grad_", "zero_grad", "loss_function"), _TRAINING),
    **dict.fromkeys(("enable_input_require_grads", "disable_input_require_grads"), _TRAINING),
    **dict.fromkeys(("gradient_checkpointing_enable", "gradient_checkpointing_disable"), _TRAINING),
    **dict.fromkeys(("activation_checkpointing_enable", "activation_checkpointing_disable"), _TRAINING),
    **dict.fromkeys(("is_gradient_checkpointing", "is_activation_checkpointing"), _TRAINING),
    "supports_gradient_checkpointing": _TRAINING,
    **dict.fromkeys(("eval", "training"), _NEVER_TRAINS),
    # devices, number types and kernels
    **dict.fromkeys(("to", "to_empty", "cpu", "device", "cuda", "xpu", "ipu", "mtia", "share_memory"), _CPU),
    **dict.fromkeys(("half", "float", "double", "bfloat16", "type"), _DTYPE),
    **dict.fromkeys(("compile", "get_compiled_call", "is_backend_compatible"), "nothing has to be compiled"),
    **dict.fromkeys(("set_attn_implementation", "get_correct_attn_implementation"), _ENGINE),
    **dict.fromkeys(("set_experts_implementation", "get_experts_implementation"), _ENGINE),
    **dict.fromkeys(("get_correct_experts_implementation", "set_use_kernels", "use_kernels"), _ENGINE),
    **dict.fromkeys(("tp_size", "fsdp_size", "supports_tp_plan", "supports_pp_plan"), _ONE_PROCESS),
    "supports_context_parallel": _ONE_PROCESS,
    # modules
    **dict.fromkeys(("modules", "named_modules", "children", "named_children", "get_submodule", "apply"), _INSIDE),
    **dict.fromkeys(("register_forward_hook", "register_forward_pre_hook", "set_submodule"), _INSIDE),
    **dict.fromkeys(("register_full_backward_hook", "can_record_outputs"), _INSIDE),
    **dict.fromkeys(("get_encoder", "get_decoder", "base_model_prefix"), _BASE),
    # texts, files
    **dict.fromkeys(("generate", "can_generate", "generation_config_class"), _NO_TEXT),
    "push_to_hub": "use save_pretrained(folder); hf upload NAME FOLDER uploads it",
    **dict.fromkeys(("load_adapter", "add_adapter", "set_adapter", "disable_adapters", "enable_adapters"), _ADAPTERS),
    **dict.fromkeys(("active_adapters", "get_adapter_state_dict", "delete_adapter", "peft_config"), _ADAPTERS),
    "enable_peft_hotswap": _ADAPTERS,
    **dict.fromkeys(("main_input_name", "input_modalities", "dummy_inputs"), "a model is called with input_ids"),
    **dict.fromkeys(("register_for_auto_class", "is_remote_code", "is_custom_code"), "code of a folder is never run"),
    **dict.fromkeys(("model_tags", "add_model_tags"), "no model card is written"),
    "warn_if_padding_and_no_attention_mask": "pass attention_mask with padded rows",
}

"""transformers: the call of its fast tokenizer, with NumPy arrays."""

# Arguments and results differ between engines, so they have no common types.

from __future__ import annotations

import os
from typing import Any

from worker import UnsupportedError, Work, padded, serve

os.environ["TRANSFORMERS_VERBOSITY"] = "error"


def version() -> str:
    import transformers

    return transformers.__version__


def load(request: dict[str, Any]) -> Any:
    from transformers import PreTrainedTokenizerFast

    roles = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    names = ["input_ids", "token_type_ids", "attention_mask"]
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=request["tokenizer"], model_input_names=names, **roles)

    def works(name: str, options: dict[str, Any]) -> Work:
        if name not in ("padded", "pairs"):
            message = f"transformers is measured only for arrays, not for {name}"
            raise UnsupportedError(message)
        call = {"padding": options["padding"], "return_tensors": "np"}
        if "max_length" in options:
            call |= {"truncation": True, "max_length": options["max_length"]}

        def run(texts: list[Any]) -> Any:
            if name == "pairs":
                return tokenizer([first for first, _ in texts], [second for _, second in texts], **call)
            return tokenizer(texts, **call)

        return padded(run)

    return works


if __name__ == "__main__":
    serve(load, version)

"""torch over the model of transformers, in batches padded to their longest row."""

from __future__ import annotations

import os
from typing import Any

import model_worker
from model_worker import Model
from padded import PaddedEngine


class Torch(PaddedEngine):
    """A model with fused attention (SDPA). Kinds: "float32" and "bfloat16", the type of weights and states."""

    def version(self) -> str:
        os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "TQDM_DISABLE": "1"}
        import torch
        import transformers
        from transformers import BertModel  # noqa: F401 - imported before memory is measured

        return f"{torch.__version__}, transformers {transformers.__version__}"

    def prepare(self, model: Model) -> None:
        """Nothing is converted."""

    def load(self, model: Model, threads: int) -> None:
        import torch
        from transformers import BertModel

        self.torch = torch
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        dtype = getattr(torch, model.kind)
        self.model = BertModel.from_pretrained(
            model.folder, dtype=dtype, attn_implementation="sdpa", add_pooling_layer=False
        ).eval()
        self.load_tokenizer(model.folder)

    def hidden(self, ids: Any, mask: Any) -> Any:
        tensors = [self.torch.from_numpy(x) for x in (ids, mask)]
        with self.torch.inference_mode():
            states = self.model(input_ids=tensors[0], attention_mask=tensors[1]).last_hidden_state
        return states.float().numpy()


model_worker.serve(Torch())

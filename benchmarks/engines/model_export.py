"""Exports a model of transformers as an ONNX graph, by torch."""

from __future__ import annotations

import model_worker
from exporter import Exporter
from model_worker import Model


class Export(Exporter):
    """The exporter. Inputs of the graph: input_ids and attention_mask, int64 [B, S]; output: [B, S, H]."""

    def version(self) -> str:
        import torch
        import transformers

        return f"{torch.__version__}, transformers {transformers.__version__}"

    def prepare(self, model: Model) -> None:
        import torch
        from transformers import AutoModel

        class Encoder(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = AutoModel.from_pretrained(model.folder, dtype=torch.float32)

            def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
                states: torch.Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
                return states

        names = ("input_ids", "attention_mask", "last_hidden_state")
        ids, mask = torch.ones((2, 24), dtype=torch.long), torch.ones((2, 24), dtype=torch.long)
        mask[1, 17:] = 0  # with a mask of ones alone, the exporter leaves it out
        torch.onnx.export(
            Encoder().eval(),
            (ids, mask),
            str(model.place / "exported.onnx"),
            input_names=names[:2],
            output_names=names[2:],
            dynamic_axes={name: {0: "batch", 1: "length"} for name in names},
            opset_version=17,
            dynamo=False,
        )


model_worker.serve(Export())

"""Exports a model by optimum, as the Hub has them: `optimum.onnx`, and `optimum-int8.onnx`, which optimum quantizes.

The settings of int8 are those with which sentence-transformers makes the Hub's `model_qint8_avx512_vnni.onnx`.
"""

from __future__ import annotations

import model_worker
from exporter import Exporter
from model_worker import Model


class Optimum(Exporter):
    """The exporter. Kinds: `optimum` and `optimum-int8`. Inputs of the graphs: also token_type_ids, int64 [B, S]."""

    def version(self) -> str:
        from importlib.metadata import version

        return ", ".join(f"{name} {version(name)}" for name in ("optimum-onnx", "torch", "transformers"))

    def prepare(self, model: Model) -> None:
        from optimum.onnxruntime import ORTModelForFeatureExtraction, ORTQuantizer
        from optimum.onnxruntime.configuration import AutoQuantizationConfig

        exported = ORTModelForFeatureExtraction.from_pretrained(model.folder, export=True)
        place = model.place / "optimum"
        exported.save_pretrained(place)
        (place / "model.onnx").replace(model.place / "optimum.onnx")
        if model.kind == "optimum-int8":
            settings = AutoQuantizationConfig.avx512_vnni(is_static=False)
            ORTQuantizer.from_pretrained(exported).quantize(save_dir=place, quantization_config=settings)
            (place / "model_quantized.onnx").replace(model.place / "optimum-int8.onnx")


model_worker.serve(Optimum())

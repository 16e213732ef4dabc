"""flashrank's `Ranker`, over a graph of `onnx_graph.py` under the name of a model that it would download.

A kind is a graph, which `rank_onnx.py` writes. What it does with a query and its documents is flashrank's own: all of
them in one run, cut to 512 tokens and padded to the longest. It has no option for threads, so that its session is made
again with those that are measured.
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from typing import TYPE_CHECKING, Any

import model_worker
import numpy as np
from onnx_session import session
from ranking import Ranking

if TYPE_CHECKING:
    from model_worker import Model

NAME = "ms-marco-MiniLM-L-12-v2"
FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")
TOKENS = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")


class FlashRank(Ranking):
    """A ranker of flashrank."""

    def version(self) -> str:
        import onnxruntime

        return f"{importlib.metadata.version('FlashRank')}, onnxruntime {onnxruntime.__version__}"

    def load(self, model: Model, threads: int) -> None:
        from flashrank import Ranker
        from flashrank.Config import model_file_map

        home = model.place / "flashrank" / model.kind
        folder = home / NAME
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            shutil.copy(model.folder / name, folder)
        settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        special = {name: settings[name] for name in TOKENS}
        (folder / "special_tokens_map.json").write_text(json.dumps(special), encoding="utf-8")
        file = folder / model_file_map[NAME]
        shutil.copy(model.place / f"{model.kind}.onnx", file)
        self.ranker = Ranker(model_name=NAME, cache_dir=str(home), log_level="ERROR")
        self.ranker.session = session(file, threads)

    def texts(self, texts: list[Any]) -> Any:
        from flashrank import RerankRequest

        passages = [{"id": i, "text": document} for i, (_, document) in enumerate(texts)]
        scores = np.empty(len(texts), np.float32)
        for found in self.ranker.rerank(RerankRequest(query=texts[0][0], passages=passages)):
            scores[found["id"]] = found["score"]
        return scores


model_worker.serve(FlashRank())

"""A server of fastembed: its documented class behind a few lines of Starlette, as programs that use it have it.

    python fastembed_server.py FOLDER PORT

FOLDER has a sentence encoder of BERT's form with a pooling of means, as MiniLM. It needs fastembed, onnx, starlette and
uvicorn, with uvloop and httptools if they are installed.
"""

import asyncio
import base64
import shutil
import sys
import tempfile
from pathlib import Path

import onnx_graph
import uvicorn
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def loaded(folder: Path) -> TextEmbedding:
    place = Path(tempfile.mkdtemp())
    onnx_graph.write(folder, place, "plain")
    for name in FILES:
        shutil.copy(folder / name, place)
    TextEmbedding.add_custom_model(
        model="model",
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf="model"),
        dim=384,
        model_file="plain.onnx",
    )
    return TextEmbedding("model", specific_model_path=str(place))


def main() -> None:
    model = loaded(Path(sys.argv[1]))

    async def embeddings(request) -> JSONResponse:  # noqa: ANN001
        texts = (await request.json())["input"]
        vectors = await asyncio.to_thread(lambda: list(model.embed(texts)))
        packed = [base64.b64encode(vector.astype("<f4").tobytes()).decode() for vector in vectors]
        return JSONResponse({"data": [{"index": i, "embedding": one} for i, one in enumerate(packed)]})

    app = Starlette(
        routes=[
            Route("/v1/embeddings", embeddings, methods=["POST"]),
            Route("/health", lambda _: JSONResponse({}), methods=["GET"]),
        ]
    )
    uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")


if __name__ == "__main__":
    main()

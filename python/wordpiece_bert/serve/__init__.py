"""An HTTP server for sentence encoders and cross encoders: ``wordpiece-bert serve``, or `create_app` in a program.

It answers as OpenAI's ``/v1/embeddings`` and the rerankers of Cohere, Jina and text-embeddings-inference do, and has
``/tokenize``, ``/health``, ``/metrics`` and a description of itself. Rows of concurrent requests go through the model
together. Needs the extra ``serve`` (Starlette and uvicorn).
"""

from wordpiece_bert.serve.app import create_app
from wordpiece_bert.serve.server import run
from wordpiece_bert.serve.settings import ServerSettings

__all__ = ["ServerSettings", "create_app", "run"]

"""An HTTP server for sentence encoders and cross encoders: ``wordpiece-bert serve``, or `create_app` in a program.

It answers as OpenAI's ``/v1/embeddings`` and the rerankers of Cohere, Jina and text-embeddings-inference do, and has
``/tokenize``, ``/health``, ``/metrics`` and a description of itself. Rows of concurrent requests go through the model
together. Needs the extra ``serve`` (uvicorn).

Stability: stable.
"""

from wordpiece_bert._internal.lazy import lazy_names

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
    from wordpiece_bert.serve.app import create_app as create_app
    from wordpiece_bert.serve.server import run as run
    from wordpiece_bert.serve.settings import ServerSettings as ServerSettings

# The module of each name, imported when the name is first used.
_MODULES = {"ServerSettings": "settings", "create_app": "app", "run": "server"}

__getattr__, __dir__ = lazy_names(globals(), _MODULES)

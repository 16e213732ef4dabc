"""Settings of all tests: the profiles of Hypothesis, the threads of other libraries, and signal handlers.

By default the property tests run the same 50 examples every time, so that a failure is caused by the change under test; with
HYPOTHESIS_PROFILE=quick the same 10, as `make test` does. With HYPOTHESIS_PROFILE=random each run draws 50 others, or
the examples of ``--hypothesis-seed``; `make fuzz` runs many seeds.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from wordpiece_bert import SentenceEncoder, Tokenizer

# The tests run in as many processes as there are processors, and the arrays are small: threads of OpenBLAS and OpenMP (NumPy,
# scikit-learn) would wait for each other in loops, which takes up to ten times as long. Before anything imports NumPy.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")
# The number of OpenMP would also be ours; this one limits nothing.
os.environ.setdefault("WORDPIECE_BERT_NUM_THREADS", "1024")

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

for name, derandomize, examples in (("fixed", True, 50), ("quick", True, 10), ("random", False, 50)):
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        derandomize=derandomize,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

# Background jobs and nohup may run the tests with these signals ignored. Child processes inherit that, so commands that
# tests start would not react to being interrupted. A handler is not inherited.
if os.name != "nt":
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, lambda *_: None)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)

#: Files whose tests take long: they start and kill processes, repeat whole runs, or compare with other programs.
THOROUGH = frozenset(
    f"test_{name}"
    for name in (
        "accelerate",
        "against_peers",
        "benchmarks",
        "cli_options",
        "cli_process",
        "corpus",
        "damaged_files",
        "dtypes_of_variants",
        "evaluation",
        "families_everywhere",
        "finetune_commands",
        "finetune_families",
        "finetune_rust",
        "finetune_trainer",
        "fingerprint",
        "heads",
        "hub",
        "inspect_attention",
        "inspect_language",
        "inspect_packing",
        "inspect_pages",
        "inspect_tokens",
        "int8",
        "integrations_frames",
        "integrations_frameworks",
        "integrations_spark",
        "interrupt",
        "limits",
        "loading",
        "many_machines",
        "memory_safety",
        "notebook",
        "npy_table",
        "odd_vectors",
        "outputs",
        "parts",
        "peer_snippets",
        "prepared_vectors",
        "pretrain",
        "pretrain_data_cli",
        "pretraining_build",
        "pretraining_damage",
        "pretraining_examples",
        "pretraining_spark",
        "replaced_tokens",
        "reproducibility",
        "serve",
        "serve_answers",
        "serve_clients",
        "serve_command",
        "serve_end",
        "serve_limits",
        "serve_load",
        "serve_refusals",
        "serve_surrogates",
        "serve_telemetry",
        "serve_tokenizers",
        "sklearn",
        "spark",
        "story",
        "surface",
        "tables",
        "threads",
        "vector_files",
        "vector_folder",
        "vector_folder_updates",
        "visible_positions",
        "word_counts",
    )
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the toy models of examples/make_models.py."""
    from make_models import make_all

    return make_all(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the toy sentence encoder."""
    from make_models import make_sentences

    return make_sentences(tmp_path_factory.mktemp("models") / "sentences")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> SentenceEncoder:
    """The toy sentence encoder."""
    from wordpiece_bert import SentenceEncoder

    return SentenceEncoder(folder)


@pytest.fixture(scope="module")
def tok(folder: Path) -> Tokenizer:
    """The tokenizer of the toy sentence encoder."""
    from wordpiece_bert import Tokenizer

    return Tokenizer.from_pretrained(folder)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the files of `THOROUGH` unread where none of their tests would run, unless files are named."""
    unread = config.option.markexpr == "not thorough" and not config.option.file_or_dir
    return True if unread and collection_path.stem in THOROUGH else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of `THOROUGH`."""
    for item in items:
        if item.path.stem in THOROUGH:
            item.add_marker("thorough")

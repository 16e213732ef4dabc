"""The logger of the package, what `info` says of this machine, and the weights that are compared with a digest."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS
from processes import python
from wordpiece_bert import SentenceEncoder, Tokenizer, hub
from wordpiece_bert.cli import main
from wordpiece_bert.errors import CheckpointError
from wordpiece_bert.finetune import cached_vectors

LINUX = sys.platform.startswith("linux")
MODEL = MODELS / "sentence_plain_folder"


def test_what_is_loaded_truncated_and_read_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "wordpiece_bert"):
        encoder = SentenceEncoder(MODEL, instructions="scalar")
        with pytest.warns(UserWarning, match="truncated"):
            encoder.encode("a cat " * 100)
        for _ in range(2):
            cached_vectors(encoder, ["a cat"], tmp_path)
        SentenceEncoder(MODELS / "static_m2v")
    text = "\n".join(f"{record.name} {record.levelname} {record.getMessage()}" for record in caplog.records)
    for line in (
        f"loaded a tokenizer from {MODEL}",
        f"loaded BertModel from {MODEL / 'model.safetensors'}: float32 by scalar on ",
        "1 of 1 texts were truncated to 48 tokens, the first at index 0",
        f"wrote 1 vectors to {tmp_path}",
        f"read 1 vectors from {tmp_path}",
        f"loaded a static model from {MODELS / 'static_m2v'}: float32 by ",
    ):
        assert f"wordpiece_bert INFO {line}" in text, line
    assert "a cat a cat" not in text


def test_without_a_handler_nothing_is_shown_and_logging_is_not_imported() -> None:
    code = (
        "import sys, wordpiece_bert as wb\n"
        f"wb.Tokenizer.from_pretrained({str(MODEL)!r})\n"
        "print('logging' in sys.modules)\n"
        "import logging\n"
        f"wb.SentenceEncoder({str(MODEL)!r})"
    )
    done = python(code)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_info_has_the_versions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found.keys() == {"threads", "versions"}
    versions = found["versions"]
    assert versions["numpy"] == np.__version__
    assert versions["instructions"] in versions["instruction_sets"]
    assert versions["numerics"].keys() == {"ids", "float32", "bfloat16", "int8"}
    assert all(versions[name] for name in ("wordpiece_bert", "python", "system", "cpu", "instructions_decided_by"))
    assert main(["info", str(MODEL)]) == 0
    shown = capsys.readouterr().out
    assert "versions\n" in shown
    assert "tokenizer\n" in shown


# --- the packaged model


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let a small model be the packaged one."""
    folder = tmp_path / "toy_minilm" / "model"
    shutil.copytree(MODEL, folder)
    (tmp_path / "toy_minilm" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    digest = hub._sha256(folder / "model.safetensors", 0, 0)
    monkeypatch.setitem(hub.PACKAGED_MODELS, "minilm", hub.PackagedModel("toy==1", "toy_minilm", "model", digest))  # type: ignore[arg-type]
    return folder


def test_the_weights_of_the_package_are_compared(packaged: Path) -> None:
    SentenceEncoder("minilm")
    file = packaged / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    for name in ("minilm", "sentence-transformers/all-MiniLM-L6-v2"):
        with pytest.raises(CheckpointError, match=r"has the SHA-256 \w{64}, and the weights of toy==1 have"):
            SentenceEncoder(name)
    SentenceEncoder(packaged)  # by its folder any weights are loaded
    Tokenizer.from_pretrained("minilm")  # whose files are others


def test_info_says_which_package_answers(packaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("minilm", "sentence-transformers/all-MiniLM-L6-v2"):
        assert main(["info", name, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["package"]
        assert (found["answers_for"], found["package"]) == (name, "toy==1")
    assert main(["info", str(packaged), "--json"]) == 0
    assert "package" not in json.loads(capsys.readouterr().out)


# --- threads in a container


@pytest.mark.skipif(not LINUX or os.geteuid() != 0, reason="mounts a control group, as root of Linux")
@pytest.mark.parametrize(
    ("quota", "code", "variables", "expected"),
    [
        ("150000 100000", "", {}, "1 quota of the control group"),
        ("50000 100000", "", {}, "1 quota of the control group"),
        ("150000 100000", "", {"OMP_NUM_THREADS": "4"}, "1 quota of the control group"),
        ("max 100000", "", {"WORDPIECE_BERT_NUM_THREADS": "1"}, "1 WORDPIECE_BERT_NUM_THREADS"),
        ("max 100000", "", {"OMP_NUM_THREADS": "1"}, "1 OMP_NUM_THREADS"),
        ("150000 100000", "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})", {}, "1 affinity"),
    ],
)
def test_the_quota_of_a_container_counts_in_whole_processors(
    quota: str, code: str, variables: dict[str, str], expected: str
) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two processors")
    # Of version 2: a line of /proc/self/cgroup, and files below /sys/fs/cgroup.
    script = (
        "mount -t tmpfs none /sys/fs/cgroup && touch /sys/fs/cgroup/cgroup.controllers && "
        'mkdir -p /sys/fs/cgroup/a && printf "0::/a\\n" > /sys/fs/cgroup/own && '
        f'touch /sys/fs/cgroup/a/cgroup.controllers && echo "{quota}" > /sys/fs/cgroup/a/cpu.max && '
        'mount --bind /sys/fs/cgroup/own /proc/$$/cgroup && exec "$0" -c "$1"'
    )
    program = f"import os\n{code}\nfrom wordpiece_bert import _core\nprint(*_core.default_threads())"
    names = ("WORDPIECE_BERT_NUM_THREADS", "OMP_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in names} | variables
    command = ["unshare", "--mount", "sh", "-c", script, sys.executable, program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"a control group cannot be mounted here: {done.stderr.strip()}")
    assert done.stdout.strip() == expected

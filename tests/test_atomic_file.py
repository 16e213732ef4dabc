"""Atomic files: large contents are written and flushed in small steps, between which Python handles signals."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from processes import printed
from wordpiece_bert._internal import atomic_file
from wordpiece_bert._internal.atomic_file import AtomicFile
from wordpiece_bert.bert.checkpoint import read_tensors, write_safetensors
from wordpiece_bert.bert.half_precision import BFLOAT16, widen


def test_a_large_file_is_written_and_flushed_in_small_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed = [0]

    def note(descriptor: int) -> None:
        flushed.append(os.fstat(descriptor).st_size)

    monkeypatch.setattr(atomic_file, "_sync_data", note)
    monkeypatch.setattr(atomic_file, "_WRITTEN_AT_ONCE", 1000)
    monkeypatch.setattr(atomic_file, "_SYNCED_AT_ONCE", 5000)
    chunks = [b"", b"ab", np.arange(20_001, dtype=np.uint8).data, b"c" * 999]
    with AtomicFile(tmp_path / "large") as output:
        output.begin()
        output.write(chunks)
        output.commit()
    assert (tmp_path / "large").read_bytes() == b"".join(map(bytes, chunks))
    assert np.diff(flushed).max() <= 6000  # what is left for the flush at the end is less
    assert len(flushed) == 5


def test_tensors_of_all_shapes_and_types_are_written(tmp_path: Path) -> None:
    tensors = {
        "matrix": np.arange(6, dtype=np.float32).reshape(2, 3).T,
        "half": np.arange(3, dtype=np.float16),
        "bfloat16": np.arange(4, dtype=np.uint16).view(BFLOAT16),
        "scalar": np.array(2.5, np.float32),
        "empty": np.zeros((0, 4), np.float32),
        "big-endian": np.arange(3, dtype=">f4"),
    }
    write_safetensors(tmp_path / "x.safetensors", tensors)
    read = dict(read_tensors(tmp_path / "x.safetensors"))
    assert read.keys() == tensors.keys()
    for name, array in tensors.items():
        assert read[name].shape == array.shape
        assert read[name].tolist() == widen(array).tolist()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_child_that_exits_normally_writes_nothing_of_what_was_buffered(tmp_path: Path) -> None:
    code = """
        import os, sys
        from pathlib import Path
        from wordpiece_bert._internal.atomic_file import AtomicFile
        from wordpiece_bert._internal.file_locks import only_writer
        from wordpiece_bert.errors import InputError
        from wordpiece_bert.tokenizer.corpus.row_writer import open_output

        with only_writer(Path("folder")), AtomicFile(Path("file")) as output:
            output.begin()
            collected = open_output(None, collect=True)
            collected.begin()
            output.file.write(b"buffered ")
            collected.file.write(b"collected ")
            if child := os.fork():
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            else:
                for refused in (lambda: output.file, output.rename):
                    try:
                        refused()
                    except InputError as error:
                        assert "file: is being written by the process that this one was forked from" in str(error)
                    else:
                        raise SystemExit("not refused")
                raise SystemExit(7)
            assert Path("folder").is_dir()
            output.file.write(b"twice")
            output.commit()
        collected.file.write(b"once")
        collected.commit()
    """
    assert printed(code, cwd=tmp_path) == ["collected once"]
    assert (tmp_path / "file").read_bytes() == b"buffered twice"

"""The pages about many machines: their jobs run as local processes, and their figures are those of a record."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tiny_models
from wordpiece_bert import open_vectors

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "how-to" / "many-machines.md"
COST = ROOT / "docs" / "explanation" / "cost.md"
COUNT = 8


def job(language: str) -> str:
    """The command of a job on the page, as its shell runs it."""
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    if language == "bash":
        return str(block)
    (folded,) = re.findall(r"- >-\n(.*?)\n +workingDir", block, re.DOTALL)
    return " ".join(folded.split())


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
@pytest.mark.parametrize(
    ("language", "variables"),
    [
        ("bash", {"SLURM_ARRAY_TASK_ID": "{}", "SLURM_ARRAY_TASK_COUNT": str(COUNT)}),
        ("yaml", {"JOB_COMPLETION_INDEX": "{}"}),
    ],
)
def test_the_jobs_of_the_page_run_as_local_processes(tmp_path: Path, language: str, variables: dict[str, str]) -> None:
    tiny_models.make_all(tmp_path / "models")
    table = pyarrow.table({"id": [f"r{i}" for i in range(60)], "body": [f"bread {i} in the oven" for i in range(60)]})
    parquet.write_table(table, tmp_path / "docs.parquet", row_group_size=5)
    command = job(language).replace("wordpiece-bert", f"{sys.executable} -m wordpiece_bert")

    def run(index: int) -> subprocess.Popen[bytes]:
        environment = os.environ | {name: value.format(index) for name, value in variables.items()}
        return subprocess.Popen(["sh", "-ec", command], cwd=tmp_path, env=environment)

    running = [run(index) for index in range(COUNT)]
    assert [one.wait() for one in running] == [0] * COUNT
    assert run(3).wait() == 0  # a task that is requeued
    merge = [sys.executable, "-m", "wordpiece_bert", "merge", *(f"part-{i}.vectors" for i in range(COUNT)), "-q"]
    subprocess.run([*merge, "-o", "docs.vectors"], cwd=tmp_path, check=True)
    assert open_vectors(tmp_path / "docs.vectors").ids() == [f"r{i}" for i in range(60)]


def test_the_costs_follow_from_the_record_that_the_page_names() -> None:
    page = COST.read_text("utf-8")
    (name,) = re.findall(r"records/(intel\S+?)\.md", page)
    record = (ROOT / "benchmarks" / "records" / f"{name}.md").read_text("utf-8")
    one_thread = record.partition("## minilm, 1 thread")[2].partition("\nAs given")[0]
    rows = re.findall(r"^\| (float32|int8|bfloat16) \| ([\d,]+) \| ([\d.]+) \|$", page, re.MULTILINE)
    assert len(rows) == 3
    core, gpu = 0.085, 3.673
    for dtype, speed, hours in rows:
        (found,) = re.findall(rf"^\| ours {dtype} +\| +[\d.]+ \| +[\d.]+ \| +([\d,]+) \|", one_thread, re.MULTILINE)[:1]
        assert speed == found
        tokens = float(speed.replace(",", ""))
        assert float(hours) == round(1e9 / 3600 / tokens, 1)
        assert f"${1e9 / 3600 / tokens * core:.2f} in {dtype}" in page
        assert f"{gpu / core * 3600 * tokens / 1e9:.1f} × 10⁹ tokens in {dtype}" in page or (
            f"{gpu / core * 3600 * tokens / 1e9:.1f} × 10⁹ in {dtype}" in page
        )

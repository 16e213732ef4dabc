"""Train a vocabulary on a corpus that is larger than one machine, with Spark.

    python examples/spark_train_vocab.py examples/texts/sentences.txt -o my-vocab --vocab-size 300 --counts c.parquet
    spark-submit --master yarn examples/spark_train_vocab.py "hdfs://…/*.parquet" --column text -o my-vocab

It needs no model, but ``pip install 'wordpiece-bert[spark]'`` and Java. Each task counts the words of its partition in
Rust, Spark adds the counts up, and the driver trains the vocabulary from the sums. If the counts are saved,
`wordpiece-bert train --counts c.parquet` trains again from them, with other options, in seconds.
"""

import argparse
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import wordpiece_bert as wb
from wordpiece_bert.training.spark import count_words


def main() -> None:
    """Count words on Spark, and train on the driver."""
    parser = argparse.ArgumentParser(description="Train a vocabulary on a corpus that is larger than one machine.")
    parser.add_argument("corpus", nargs="+", help="text files with one text per line, or Parquet files with --column")
    parser.add_argument("--column", help="the column of Parquet files with the texts")
    parser.add_argument("-o", "--output", required=True, type=Path, help="the folder of the tokenizer to write")
    parser.add_argument("--counts", type=Path, help="save the counts to this .parquet, .arrow or .tsv file")
    parser.add_argument("--vocab-size", type=int, default=30_522)
    parser.add_argument("--algorithm", choices=["bpe", "top_down", "likelihood"], default="bpe")
    options = parser.parse_args()

    spark = SparkSession.builder.appName("train a vocabulary").getOrCreate()
    # By default Spark also ends lines at a carriage return. The tokenizer treats both as white space.
    frame = spark.read.parquet(*options.corpus) if options.column else spark.read.text(options.corpus)
    counts = count_words(frame, options.column)
    print(counts)
    if options.counts:
        counts.save(options.counts)

    vocab = wb.train_vocab(counts, options.vocab_size, algorithm=options.algorithm)
    vocab.save_pretrained(options.output)
    print(vocab)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # a missing file or model, a wrong argument: a sentence
        sys.exit(f"error: {error}")

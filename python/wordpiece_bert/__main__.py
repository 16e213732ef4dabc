"""Runs the command ``wordpiece-bert`` as ``python -m wordpiece_bert``."""

from wordpiece_bert.cli import main

if __name__ == "__main__":
    raise SystemExit(main())

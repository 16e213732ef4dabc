"""Lets ``python -m wordpiece_bert`` do what the command ``wordpiece-bert`` does."""

from wordpiece_bert.cli import main

if __name__ == "__main__":
    raise SystemExit(main())

"""The command ``wordpiece-bert``: one module for each subcommand, over the functions of the library.

Every subcommand is a thin wrapper of public functions; nothing else in the package imports this one. `program`
has the parser, the dispatch and the exit codes, `arguments` the options that several subcommands share.
"""

from wordpiece_bert.cli.program import main

__all__ = ["main"]

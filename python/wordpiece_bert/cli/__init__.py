"""The command ``wordpiece-bert``: one module for each subcommand, over the functions of the library.

Every subcommand is a thin wrapper of public functions; nothing else in the package imports this one. `program` has the
parser, the dispatch and the exit codes, `arguments` the options that several subcommands share. Modules of the library
that need NumPy are imported inside functions, so that ``--help`` does not wait for them.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run the command line, as `wordpiece_bert.cli.program.main`; Ctrl-C is obeyed during imports, too."""
    try:
        from wordpiece_bert.cli import program
    except KeyboardInterrupt:
        sys.stderr.write("wordpiece-bert: interrupted\n")
        return 130
    return program.main(argv)

"""Inventories of other projects' documentation, so that names link to it and the build needs no network.

An inventory in docs/inventories/ is text: the address of a documentation, then a line for each name that this
documentation links to, with its role and its page, in which $ stands for the name. Sphinx reads a compressed form,
which is written here.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HEAD = (
    "# Sphinx inventory version 2\n# Project: {}\n# Version: \n# The remainder of this file is compressed using zlib.\n"
)


def write_inventories(sources: Path, output: Path) -> dict[str, tuple[str, str]]:
    """Write the inventories as Sphinx reads them.

    Parameters
    ----------
    sources : Path
        The folder with a text file for each project.
    output : Path
        The folder to write to; it is made.

    Returns
    -------
    dict of str to tuple of str
        The value of ``intersphinx_mapping``.
    """
    output.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for source in sorted(sources.glob("*.txt")):
        address, *lines = source.read_text(encoding="utf-8").splitlines()
        # Sphinx itself puts the name in place of a $ at the end alone.
        entries = "".join(
            f"{name} {role} 1 {page.replace('$', name)} -\n" for name, role, page in map(str.split, lines)
        )
        target = output / f"{source.stem}.inv"
        target.write_bytes(HEAD.format(source.stem).encode() + zlib.compress(entries.encode()))
        mapping[source.stem] = (address, str(target))
    return mapping

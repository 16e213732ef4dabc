"""Check that the modules of each crate use each other in one direction, without cycles.

Usage: ``check_modules.py CARGO_MODULES``, where the argument is the program cargo-modules. Its own option ``--acyclic``
also looks at items, where a type and its methods are a cycle; so its graph is read here, restricted to the ``use``
declarations between modules.
"""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from graphlib import CycleError, TopologicalSorter

USES = re.compile(r'^\s*"([\w:]+)" -> "([\w:]+)" \[label="uses"', re.MULTILINE)


#: Modules whose types have traits that other modules implement: cargo-modules counts what an implementation uses as
#: used by the type. The kinds of layers know neither of the passes over them.
IMPLEMENTED_IN = {"wordpiece_kernels::plan": ("wordpiece_kernels::encoder", "wordpiece_kernels::training")}


def crates() -> list[str]:
    """Return the names of the workspace's packages."""
    command = ["cargo", "metadata", "--no-deps", "--format-version=1", "--locked"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [package["name"] for package in json.loads(output)["packages"]]


def uses(program: str, crate: str) -> dict[str, set[str]]:
    """Return which modules each module of a crate uses."""
    kinds = ["externs", "sysroot", "fns", "traits", "types"]
    command = [
        program,
        "dependencies",
        "--package",
        crate,
        "--lib",
        "--all-features",
        *(f"--no-{kind}" for kind in kinds),
    ]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    graph: dict[str, set[str]] = {}
    for module, used in USES.findall(output):
        if module != used and not used.startswith(IMPLEMENTED_IN.get(module, ())):
            graph.setdefault(module, set()).add(used)
    if not graph:
        sys.exit(f"{crate}: cargo-modules reports no module that uses another; has its output changed?")
    return graph


def main() -> None:
    """Print a line for each crate; exit with status 1 if there is a cycle."""
    cycles = 0
    names = crates()
    # Each process uses one processor.
    with ThreadPoolExecutor(os.cpu_count()) as executor:
        graphs = executor.map(lambda crate: uses(sys.argv[1], crate), names)
    for crate, graph in zip(names, graphs, strict=True):
        try:
            TopologicalSorter(graph).prepare()
            print(f"{crate}: no cycles among {len(graph)} modules")
        except CycleError as error:
            cycles += 1
            # Each module of the cycle is used by the next.
            print(f"{crate}: modules use each other in a cycle: {' <- '.join(error.args[1])}")
    sys.exit(bool(cycles))


if __name__ == "__main__":
    main()

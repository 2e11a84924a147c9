"""Plants each fault of faults.toml in a tree and runs the tests that should find it: `python -m tests.mutants`.

The tree is not to be used meanwhile. The command fails when a fault survives.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.mutants.table import Fault, NotPlantedError, faults, place_of, planted

ROOT = Path(__file__).resolve().parents[2]
# A fault may make a test wait for what never comes.
_SECONDS_OF_TEST = 120
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", re.MULTILINE)


def first_failure(fault: Fault, tree: Path) -> str:
    """Returns the first failing test, or an empty text. Raises NotPlantedError, and RuntimeError if pytest could not
    run."""
    command = [str(tree / ".venv/bin/pytest"), "-x", "-q", f"--timeout={_SECONDS_OF_TEST}", *fault.tests]
    # Code that is compiled from a fault must not stay.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    with planted(fault, tree):
        run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return ""
    found = _FAILED.search(run.stdout)
    if found is None:
        raise RuntimeError(f"fault {fault.number}: pytest ended with {run.returncode}:\n{run.stdout}{run.stderr}")
    return found[1]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout in which the faults are planted")
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="the numbers of the faults, from 1")
    return parser.parse_args()


def main() -> int:
    arguments = _arguments()
    # Whoever ends the command gets the file back as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    chosen = [fault for fault in faults() if not arguments.only or fault.number in arguments.only]
    tree = arguments.tree.resolve()
    try:
        for fault in chosen:
            place_of(fault, tree)
    except NotPlantedError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    survived = 0
    for fault in chosen:
        began = time.monotonic()
        failed = first_failure(fault, tree)
        survived += not failed
        found = "found" if failed else "survived"
        seconds = time.monotonic() - began
        sys.stdout.write(f"{fault.number:3} {found:8} {seconds:4.0f} s  {fault.fault}  {failed}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - survived} of {len(chosen)} found\n")
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main())

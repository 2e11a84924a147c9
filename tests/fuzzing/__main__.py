"""`python -m tests.fuzzing`: fuzzes the entrances for minutes or hours, or replays one case.

It starts a gateway with services of its own, prints one line per entrance and every finding with the command line that
replays it, and exits with 1 when there is a finding.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys

_OPTIONS = {"FUZZ_SEED": "seed", "FUZZ_SECONDS": "seconds", "FUZZ_ENTRANCE": "entrance", "FUZZ_CASE": "case"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for all entrances together (default 60)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--entrance", default="", help="only this one")
    parser.add_argument("--case", default="", help="only the case of this number")
    given = vars(parser.parse_args())
    environment = {**os.environ, **{name: str(given[option]) for name, option in _OPTIONS.items()}}
    sys.stdout.write(f"seed {given['seed']}\n")
    sys.stdout.flush()
    options = ["-q", "-p", "no:randomly", "--timeout=0", "--show-capture=no"]
    words = [sys.executable, "-m", "pytest", *options, "tests/fuzzing"]
    return subprocess.call(words, env=environment)


if __name__ == "__main__":
    raise SystemExit(main())

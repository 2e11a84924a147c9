"""`python -m tests.integrations.translations --write` writes into the tables what the adapters do today; the difference
is for review. `--check` names the tables that say something else. A new case needs its inputs only."""

from __future__ import annotations

import argparse
import sys

from tests.integrations.translations.tables import COMMAND, files, rewritten


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    stale = [file for file in files() if file.read_text() != rewritten(file)]
    for file in stale:
        if arguments.write:
            file.write_text(rewritten(file))
        else:
            sys.stderr.write(f"{file} is not current: {COMMAND}\n")
    return 1 if stale and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())

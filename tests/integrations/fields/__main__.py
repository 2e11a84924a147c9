"""`python -m tests.integrations.fields --write` puts the tables into docs/providers/*.md; `--check` compares them."""

from __future__ import annotations

import argparse
import sys

from tests.integrations.fields.tables import COMMAND, pages, section_of, write


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    stale = [page for page, table in pages().items() if section_of(page) != table()]
    for page in stale:
        if arguments.write:
            write(page, pages()[page]())
        else:
            sys.stderr.write(f"docs/providers/{page} is not current: {COMMAND}\n")
    return 1 if stale and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())

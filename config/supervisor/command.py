from __future__ import annotations

import sys

from django.core.management import execute_from_command_line


def main(*arguments: str) -> None:
    sys.argv = ["manage.py", *arguments]
    execute_from_command_line(sys.argv)

#!/usr/bin/env python
"""Django's command line for the project."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    try:
        execute_from_command_line(sys.argv)
    except Exception as error:
        if sys.argv[1:2] != ["run_experiment"]:
            raise
        # Python's exit code of an exception is that of a verdict of this command.
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(3)

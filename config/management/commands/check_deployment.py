from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from config.deployment import find_problems


class Command(BaseCommand):
    help = "Say what is wrong with this host's settings and stores. Exit code 1 when it is not fit to serve."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        problems = find_problems()
        fit = not any(problem.is_fatal for problem in problems)
        if options["json"]:
            self.stdout.write(json.dumps({"fit": fit, "problems": [asdict(problem) for problem in problems]}))
        else:
            for problem in problems:
                self.stdout.write(f"{'ERROR' if problem.is_fatal else 'warning'} {problem.check}: {problem.message}")
            self.stdout.write("This host is fit to serve." if fit else "This host is not fit to serve.")
        if not fit:
            self.stdout.flush()
            sys.exit(1)

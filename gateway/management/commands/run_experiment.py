"""`manage.py run_experiment` is `svc experiments run` of the Python client (docs/ci.md): it only uses the API."""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

_CLIENT = settings.BASE_DIR / "clients" / "python" / "src"


class Command(BaseCommand):
    help = "Compare a version of a prompt with another one over a data set, on a service that runs."
    requires_system_checks: list[str] = []

    def run_from_argv(self, argv: list[str]) -> None:
        """The client reads the options, because its exit codes differ from those of Django's parser."""
        sys.exit(_run(argv[2:]))

    def print_help(self, prog_name: str, subcommand: str) -> None:
        _run(["--help"])

    def handle(self, *args: Any, **options: Any) -> None:
        raise NotImplementedError("run_experiment is called from a command line")


def _run(arguments: list[str]) -> int:
    # The client is no package that the service installs, but a folder beside it.
    sys.path.append(str(_CLIENT))
    from prompt_gateway_client.command import run_experiment

    return run_experiment("manage.py run_experiment", arguments)

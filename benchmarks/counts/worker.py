"""A web worker as `serve` runs it, which also counts: `python -m benchmarks.counts.worker FD PRESTOP_FD SERVING_FD
FILE`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django

from benchmarks.counts import probe


def main(descriptor: int, prestop: int, serving: int, file: Path) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    django.setup()
    # Django's settings are read when the module is imported.
    from config.supervisor import web_worker

    probe.install(file)
    web_worker.main(descriptor, prestop, serving)


if __name__ == "__main__":
    listening, prestop_seen, serving_said = map(int, sys.argv[1:4])
    main(listening, prestop_seen, serving_said, Path(sys.argv[4]))

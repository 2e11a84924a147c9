"""Python that has imported what the product's settings need of others, and forks itself for each environment.

    fresh = Fresh()
    fresh.run("from django.conf import settings; print(settings.DEBUG)", {"VAR_DIR": "/tmp/var"})

Each fork reads the settings as a new process does: it imports every module of the product itself. It takes a quarter of
the CPU, since most of a short process's CPU goes into importing the same libraries.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

# Libraries that read neither the environment nor Django's settings while they are imported.
_OTHERS = (
    "aiohttp",
    "celery.app.base",
    "celery.schedules",
    "clickhouse_driver",
    "cryptography.fernet",
    "django.core.management",
    "django.db.models",
    "django.forms",
    "django.template",
    "django.views.generic",
    "msgspec",
    "psycopg",
    "redis",
    "requests",
    "yaml",
)
ROOT = Path(__file__).resolve().parent.parent.parent


class Fresh:
    def __init__(self) -> None:
        words = [sys.executable, "-m", "tests.config.fresh"]
        kept = {"PATH": os.environ["PATH"]}
        self._process = subprocess.Popen(
            words, cwd=ROOT, env=kept, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, code: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        assert self._process.stdin and self._process.stdout
        with TemporaryDirectory() as folder:
            wanted = {"code": code, "environment": dict(environment), "folder": folder}
            self._process.stdin.write(json.dumps(wanted) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
            assert answer, "the process that forks has ended"
            output, errors = (Path(folder, name).read_text(encoding="utf-8") for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(code, int(answer), output, errors)

    def stop(self) -> None:
        self._process.communicate()


Python = Callable[..., subprocess.CompletedProcess[str]]


@contextmanager
def configured() -> Iterator[Python]:
    fresh = Fresh()

    def run(code: str, var: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "VAR_DIR": str(var),
            "DJANGO_SETTINGS_MODULE": "config.settings.base",
            **variables,
        }
        return fresh.run(f"import django; django.setup(); from django.conf import settings\n{code}", environment)

    try:
        yield run
    finally:
        fresh.stop()


def _serve() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _live(json.loads(line))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _live(wanted: dict[str, Any]) -> NoReturn:
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(Path(wanted["folder"], name), os.O_WRONLY | os.O_CREAT), descriptor)
    os.environ.clear()
    os.environ.update(wanted["environment"])
    code = 1
    try:
        exec(wanted["code"], {"__name__": "__main__"})  # noqa: S102 - the tests have written it
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
        if not isinstance(error.code, int | None):
            sys.stderr.write(f"{error.code}\n")
    except BaseException:
        # What the product has set to report errors is asked first, as by the interpreter.
        try:
            sys.excepthook(*sys.exc_info())
        except BaseException:
            traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _import_others() -> None:
    for module in _OTHERS:
        importlib.import_module(module)
    own = {name for name in sys.modules if name.partition(".")[0] in ("config", "core", "gateway")}
    assert not own, f"each process imports these itself: {own}"


if __name__ == "__main__":
    _import_others()
    _serve()

"""Prepares the stores before a process serves: tables, keys, a first project, prices.

It runs in a process that ends with it: the supervisor lives as long as the service, and would keep the memory of
migrations and price lists.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from django.conf import settings
from django.core.management.base import CommandError
from django.db import OperationalError, connection, connections

from config import deployment
from config.supervisor import schema
from config.supervisor.children import StartError
from config.supervisor.processes import Processes, Program
from core.encryption.canary import WrongKeysError, check_canary_of_old_tables, ensure_canary
from core.management.first_key import show_first_key
from core.processes.locks import installation_lock
from core.processes.schema import missing_migrations
from core.services import BootstrappedProject
from integrations.pricing.services import load_shipped_prices_once


@dataclass(frozen=True, slots=True)
class Welcome:
    project_id: str
    api_key: str
    curl: str


def welcome(made: BootstrappedProject, base_url: str, *, sandbox: bool) -> Welcome:
    model = "sandbox/echo" if sandbox else "gpt-4o-mini"
    return Welcome(str(made.project_id), made.api_key, _curl(base_url, made.api_key, model))


def _curl(base_url: str, key: str, model: str) -> str:
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Hello"}]})
    return (
        f"curl {base_url}/api/gateway/v1/chat/completions -H 'Authorization: Bearer {key}' "
        f"-H 'Content-Type: application/json' -d '{body}'"
    )


def show(made: Welcome) -> bool:
    """Prints the first key and returns whether it can have been read; if not, a later start makes another."""
    if _leads_nowhere(sys.stdout):
        return False
    lines = (
        "First start: a project and its key were made. The key is shown only now.",
        f"  project id  {made.project_id}",
        f"  API key     {made.api_key}",
        f"\nTry it, once the service says that it serves:\n\n  {made.curl}\n",
    )
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    return True


def _leads_nowhere(stream: TextIO) -> bool:
    try:
        return os.fstat(stream.fileno()).st_rdev == os.stat(os.devnull).st_rdev
    except (OSError, ValueError):
        return False  # The output is no file but a test's buffer, which the test reads.


Show = Callable[[Welcome], bool]


async def prepare(
    processes: Processes, base_url: str, *, migrate: bool, looking: Awaitable[None], modules: Sequence[str]
) -> None:
    """Prepares the SQL database in a process of its own, which a cancelled caller leaves running. Its tables are
    changed once `looking` has found nothing. The process is forked before the fork server imports the modules.

    Raises CommandError for what an operator has to change, and StartError for any other failure, whose traceback that
    process has printed.
    """
    (reading, refused), (looked, begin) = os.pipe(), os.pipe()

    async def allow_changes() -> None:
        await looking
        os.write(begin, b"\n")

    with os.fdopen(reading, encoding="utf-8") as refusal:
        try:
            program = Program([base_url, *(["migrate"] if migrate else [])], f"{__name__}:main", [refused, looked])
            ended = await processes.run("preparation", program)
            _, _, code = await asyncio.gather(allow_changes(), processes.import_modules(modules), ended)
        finally:
            for descriptor in (refused, looked, begin):
                os.close(descriptor)
        if message := refusal.read():
            raise CommandError(message)
    if code:
        raise StartError(f"the preparation of the stores ended with exit code {code}")


def main(refused: int, looked: int, base_url: str, *migrate: str) -> None:
    def may_change() -> None:
        if not os.read(looked, 1):
            sys.exit(1)  # The service does not start.

    try:
        prepare_database(base_url, show, may_change, migrate=bool(migrate))
    except CommandError as error:
        os.write(refused, str(error).encode())
        sys.exit(error.returncode)


def prepare_database(base_url: str, show: Show, may_change: Callable[[], None], *, migrate: bool) -> None:
    """Refuses unfit stores, migrates the SQL database, checks the encryption keys, and makes the first project and the
    shipped prices. `may_change` is called before tables change, and ends the process if they may not.

    One host at a time does this, so that one of them shows the key, before anything that takes long. Raises
    CommandError.
    """
    try:
        schema.wait_for_database()
        if problems := deployment.find_problems(deployment.REFUSALS):
            raise CommandError(" ".join(problem.message for problem in problems))
        if migrate and _changes_tables():
            may_change()
        check_canary_of_old_tables()
        (schema.migrate_database if migrate else schema.check_database)()
        with installation_lock("start"):
            ensure_canary()
            show_first_key(lambda made: show(_welcome(made, base_url)))
            load_shipped_prices_once()
    except WrongKeysError as error:
        raise CommandError(str(error)) from error
    except OperationalError as error:
        reason = " ".join(str(error).split())
        raise CommandError(f"The SQL database cannot be used, see DATABASE_URL: {reason}") from error
    finally:
        connections.close_all()


def _changes_tables() -> bool:
    # A look into an SQLite database that is not there would make its file.
    is_there = connection.vendor != "sqlite" or Path(connection.settings_dict["NAME"]).exists()
    return not is_there or bool(missing_migrations())


def _welcome(made: BootstrappedProject, base_url: str) -> Welcome:
    return welcome(made, base_url, sandbox=settings.SANDBOX)

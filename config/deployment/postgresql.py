from __future__ import annotations

from collections.abc import Iterator

from django.db import DatabaseError, InterfaceError, connection

from config.deployment import postgresql_servers
from config.deployment.problem import Problem, lacks, skew
from core.encryption.canary import WrongKeysError, check_canary
from core.models import EncryptionCanary
from core.processes.schema import missing_migrations
from integrations.access.credentials import is_usable
from integrations.models import ProviderIntegration


def check() -> Iterator[Problem]:
    if refused := list(postgresql_servers.refuse()):
        yield from refused
        return
    yield from postgresql_servers.advise()
    try:
        missing = missing_migrations()
        if missing:
            yield Problem("migrations", lacks("SQL database", missing))
            return
        yield from _keys()
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
                yield from skew("database", float(cursor.fetchone()[0]))
    except (DatabaseError, InterfaceError) as error:
        yield Problem("database", f"The SQL database does not answer ({type(error).__name__}): see DATABASE_URL.")


def _keys() -> Iterator[Problem]:
    try:
        check_canary()
    except WrongKeysError as error:
        yield Problem("secrets", str(error))
    if not EncryptionCanary.objects.exists():
        yield Problem("secrets", "There is no canary yet: the first `manage.py serve` makes it.", is_fatal=False)
    unreadable = [str(row) for row in ProviderIntegration.objects.filter(enabled=True) if not is_usable(row)]
    if unreadable:
        message = (
            f"{len(unreadable)} stored credentials cannot be read, the first is {unreadable[0]}: enter them again."
        )
        yield Problem("credentials", message)

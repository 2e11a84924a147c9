from __future__ import annotations

from django.core.management.base import CommandError
from django.db import OperationalError, connection

from core.models import ApiKey, Project
from core.selectors import find_project


def require_tables() -> None:
    try:
        present = set(connection.introspection.table_names())
    except OperationalError as error:
        raise CommandError(f"The database cannot be reached: {str(error).strip()}") from error
    if not {Project._meta.db_table, ApiKey._meta.db_table} <= present:
        raise CommandError("The database has no tables yet: run `manage.py migrate`, or start `manage.py serve`.")


def require_project(named: str) -> Project:
    require_tables()
    project = find_project(named)
    if project is None:
        raise CommandError(f"There is no project with the id or name {named!r}.")
    return project

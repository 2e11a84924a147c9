"""`python -m tests.analytics.declared_columns PROJECT SPOOL` is a version whose record declares two more columns.

It migrates the store, ships a request that has both, anonymises it as a deletion does, and prints what is read.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

_RECORD = "analytics.request_log.record"
# The whole change that a later version makes to declare them: the last field of `LoggedRequest` gets two successors.
_LAST_FIELD = "    team_id: UInt64 = 0\n"
_FIELDS = """    region: Annotated[Name, Since(9060)] = ""
    note: Annotated[PersonalText, Since(9061)] = ""
"""


def _declare() -> None:
    """Imports the declaration of the record with the fields."""
    spec = importlib.util.find_spec(_RECORD)
    assert spec is not None
    assert spec.origin is not None
    text = (
        Path(spec.origin)
        .read_text(encoding="utf-8")
        .replace("    RetentionDays,\n", "    RetentionDays,\n    Since,\n")
    )
    assert text.count(_LAST_FIELD) == 1
    module = sys.modules[_RECORD] = importlib.util.module_from_spec(spec)
    exec(compile(text.replace(_LAST_FIELD, _LAST_FIELD + _FIELDS), spec.origin, "exec"), module.__dict__)  # noqa: S102


def _run(project: UUID, spool: Path) -> dict[str, Any]:
    from analytics.clickhouse import client, ledger, migrator
    from analytics.queries.requests import get_request
    from analytics.request_log.columns import ANONYMISED
    from tests.factories.analytics import make_entry, store

    behind, applied = ledger.is_behind(), migrator.migrate()
    entry = make_entry(project_id=str(project), region="eu-west-1", note="Ann", user_id="ann")
    store(spool, entry)
    request = get_request(project, UUID(entry.record.request_id))
    rows = client.execute(f"SELECT {', '.join(ANONYMISED)}, true FROM requests WHERE note != ''")  # noqa: S608 - names
    client.insert("anonymised", (*ANONYMISED, "had_user"), rows, token="anonymised")
    return {
        "behind": [behind, ledger.is_behind()],
        "applied": applied,
        "request": [getattr(request, "region", None), getattr(request, "note", None)],
        "stored": client.execute("SELECT region, note, user_id FROM requests ORDER BY ALL"),
    }


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    _declare()
    import django

    django.setup()
    sys.stdout.write(json.dumps(_run(UUID(sys.argv[1]), Path(sys.argv[2]))))

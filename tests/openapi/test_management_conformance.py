"""schemathesis sends every operation the requests that the document allows, and compares the answers with it."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings

from tests.night import NIGHT
from tests.openapi.checks import CHECKS, EXAMPLES
from tests.openapi.conftest import Populated
from tests.openapi.routes import channels_paths

schema = schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application()).exclude(
    path=sorted(channels_paths())
)


@schemathesis.serializer("application/x-protobuf", "application/x-ndjson")
def as_it_is(ctx: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


# The phase `coverage` tries every bound of every parameter: nine tenths of the time. By day `test_parameters.py` and
# `test_strict_bodies.py` try each bound by its name.
schema.config.phases.update(phases=["examples", *(["coverage"] if NIGHT else []), "fuzzing"])


# The export streams on an event loop, which WSGI does not have.
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators:Warning")
@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_operation__any_documented_request__answers_as_described(
    case: schemathesis.Case[Any], populated: Populated, offline: None, one_connection: None
) -> None:
    _aim(case, populated.known)
    with transaction.atomic():
        answer = case.call(headers=populated.headers)
        transaction.set_rollback(True)
    case.validate_response(answer, checks=CHECKS, headers=populated.headers)


def _aim(case: schemathesis.Case[Any], known: dict[str, Any]) -> None:
    """Fills two of three paths with existing values, and the caller's own project wherever one is named."""
    for name in case.path_parameters or {}:
        if name in known and len(repr(case.body)) % 3:
            case.path_parameters[name] = known[name]
    for named in (case.query, case.body):
        if isinstance(named, dict) and "project_id" in named:
            named["project_id"] = known["project_id"]

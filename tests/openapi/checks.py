from __future__ import annotations

from typing import Any

import schemathesis
from schemathesis.checks import CheckContext, not_a_server_error
from schemathesis.core.transport import Response
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.described import check
from tests.night import examples


def body_conformance(context: CheckContext, answer: Response, case: schemathesis.Case[Any]) -> bool | None:
    """Compares a stream event by event, which schemathesis takes for the whole."""
    (media_type,) = answer.headers.get("content-type", [""])
    if media_type.startswith("text/event-stream"):
        check(case.operation.path, case.method, answer.status_code, media_type, answer.content)
        return None
    return response_schema_conformance(context, answer, case)


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    body_conformance,
]
# The number of random examples for each operation.
EXAMPLES = examples(2, 4)

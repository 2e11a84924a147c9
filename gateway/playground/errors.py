from __future__ import annotations

from core.errors import ApplicationError
from gateway.pipeline.internal_client import InternalAnswer

REQUEST_ID = "x-svc-request-id"
"""The header that names the failed request in the request log; `x-request-id` is the management call's."""

_PASSED_ON = ("retry-after", "x-ratelimit-")


class PlaygroundError(ApplicationError):
    def __init__(self, answer: InternalAnswer) -> None:
        failure = answer.error
        if failure is None:
            raise ValueError("the answer is not a failure")
        headers = {name: value for name, value in failure.headers.items() if name.startswith(_PASSED_ON)}
        super().__init__(failure.message, code=failure.code, headers={**headers, REQUEST_ID: answer.request_id})
        # The class attributes are overridden, because each answer has a status and a type of its own.
        self.status = failure.status  # type: ignore[misc]
        self.type = failure.type  # type: ignore[misc]

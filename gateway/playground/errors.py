"""The playground's failure: that of the request it made."""

from __future__ import annotations

from core.errors import ApplicationError
from gateway.internal_client import Answer

REQUEST_ID = "x-svc-request-id"
"""The header that names the failed request in the request log; `x-request-id` is the management call's."""

_PASSED_ON = ("retry-after", "x-ratelimit-")


class PlaygroundError(ApplicationError):
    """The gateway's error for the answer's request, with its status and what a client should know beside."""

    def __init__(self, answer: Answer) -> None:
        told = answer.error
        if told is None:
            raise ValueError("the answer is no failure")
        headers = {name: value for name, value in told.headers.items() if name.startswith(_PASSED_ON)}
        super().__init__(told.message, code=told.code, headers={**headers, REQUEST_ID: answer.request_id})
        # Those of the class are the same for all its failures.
        self.status = told.status  # type: ignore[misc]
        self.type = told.type  # type: ignore[misc]

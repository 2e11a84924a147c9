from __future__ import annotations

import json

from core.errors import ApplicationError
from core.http.exception_handler import error_response, log_unexpected, translate
from gateway.protocol.reply import HeaderList, Reply


async def refuse(reply: Reply, error: Exception, *, method: str) -> None:
    known = translate(error)
    if known is None:
        log_unexpected(error, reply.request_id)
        known = ApplicationError("The service failed unexpectedly.")
    answer = error_response(known)
    headers: HeaderList = [
        (name.lower().encode(), value.encode())
        for name, value in answer.headers.items()
        if name.lower() != "content-type"
    ]
    if method != "POST":
        headers.append((b"allow", b"POST"))
    if answer.status_code == 408:
        headers.append((b"connection", b"close"))
    await reply.whole(answer.status_code, json.dumps(answer.data).encode(), headers)

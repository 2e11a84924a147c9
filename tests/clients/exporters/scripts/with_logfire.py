from __future__ import annotations

import os

import logfire
from openai import OpenAI
from opentelemetry.propagate import inject

logfire.configure(send_to_logfire=False, console=False)
logfire.instrument_openai()

with logfire.span("handle turn"), logfire.set_baggage(session_id=os.environ["SESSION"]):
    headers: dict[str, str] = {}
    inject(headers)
    OpenAI().chat.completions.create(
        model=os.environ["MODEL"], messages=[{"role": "user", "content": "Hello."}], extra_headers=headers
    )
logfire.shutdown()

from __future__ import annotations

import os

from openai import OpenAI
from opentelemetry import trace
from opentelemetry.propagate import inject
from traceloop.sdk import Traceloop
from traceloop.sdk.instruments import Instruments

Traceloop.init(
    app_name="application",
    api_endpoint=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"],
    api_key=os.environ["OPENAI_API_KEY"],
    telemetry_enabled=False,
    instruments={Instruments.OPENAI},
)

with trace.get_tracer("application").start_as_current_span("handle turn"):
    Traceloop.set_association_properties({"session_id": os.environ["SESSION"]})
    headers: dict[str, str] = {}
    inject(headers)
    OpenAI().chat.completions.create(
        model=os.environ["MODEL"], messages=[{"role": "user", "content": "Hello."}], extra_headers=headers
    )
trace.get_tracer_provider().shutdown()

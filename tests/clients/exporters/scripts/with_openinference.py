from __future__ import annotations

import os

from openai import OpenAI
from openinference.instrumentation import using_session
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import inject
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
OpenAIInstrumentor().instrument(tracer_provider=provider)

with trace.get_tracer("application").start_as_current_span("handle turn"), using_session(os.environ["SESSION"]):
    headers: dict[str, str] = {}
    inject(headers)
    OpenAI().chat.completions.create(
        model=os.environ["MODEL"], messages=[{"role": "user", "content": "Hello."}], extra_headers=headers
    )
provider.shutdown()

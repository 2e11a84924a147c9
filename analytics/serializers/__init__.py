"""Wire shapes of the analytics endpoints, one module per subject.

Measured money is a JSON number: a double prints the ten places of any sum below 100,000 dollars exactly.
"""

from __future__ import annotations

from analytics.serializers.metrics import overview, provider_latency
from analytics.serializers.requests import request_entry
from analytics.serializers.sessions import session_detail, session_entry

__all__ = ["overview", "provider_latency", "request_entry", "session_detail", "session_entry"]

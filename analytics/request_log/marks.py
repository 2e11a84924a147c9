"""Attributes of a record that stand for headers which the log does not keep, for requests with a managed prompt."""

from __future__ import annotations

NO_STORE = "no_store"
"""The client sent `Cache-Control: no-store`: its request is not asked again."""
HEADER_VARIABLES = "prompt_header_variables"
"""Variables of the prompt came in headers, so that the log does not have all that the request said."""
SET = "true"

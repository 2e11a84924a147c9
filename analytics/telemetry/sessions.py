"""Finds the further sessions of a record, beside those in gen_ai.session_id and llm.session_id."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings


def other_session_ids(attributes: Mapping[str, str]) -> list[str]:
    """Returns the values of the attributes that the operator configured (OTLP_SESSION_ATTRIBUTES)."""
    return [value for name in settings.OTLP_SESSION_ATTRIBUTES if (value := attributes.get(name))]

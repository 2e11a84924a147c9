"""Where a text leaves a JSON schema. Imports no framework: it also runs in a process of its own."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import jsonschema_rs

logger = logging.getLogger("gateway.request")

_MAX_CACHED_SCHEMA_BYTES = 64 * 1024
_PATTERNS = jsonschema_rs.FancyRegexOptions(backtrack_limit=100_000)


def first_violation(schema: bytes, contents: Sequence[str]) -> int | None:
    """The index of the first of the texts that is not of the schema; None when all are, or when it is no schema."""
    validator = _validator(schema) if len(schema) <= _MAX_CACHED_SCHEMA_BYTES else _compiled(schema)
    if validator is None:
        return None
    return next((index for index, content in enumerate(contents) if not _is_valid(validator, content)), None)


def reason(schema: bytes, content: str) -> str:
    """Why a text violates the schema, without a word of it. To find it takes far longer than to see that it does."""
    try:
        instance = json.loads(content)
    except (ValueError, RecursionError):
        return "not JSON"
    try:
        validator = _validator(schema) if len(schema) <= _MAX_CACHED_SCHEMA_BYTES else _compiled(schema)
        validator.validate(instance)
    except jsonschema_rs.ValidationError as error:
        # Of the schema, which is the request's own, and not of the content, whose names may be anybody's.
        return "/".join(["#", *map(str, error.schema_path)])[:500] + " fails"
    except ValueError:
        pass
    return "a number that no schema can be held against"


def _is_valid(validator: Any, content: str) -> bool:
    try:
        return bool(validator.is_valid(json.loads(content)))
    except (ValueError, RecursionError):
        return False


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> Any:
    return _compiled(schema)


def _compiled(schema: bytes) -> Any:
    """None for what is no schema: providers refuse it or answer as they see fit."""
    try:
        # Offline: a reference in a schema must not make the gateway call an address.
        return jsonschema_rs.validator_for(
            json.loads(schema), offline=True, pattern_options=_PATTERNS, validate_formats=False
        )
    except (ValueError, RecursionError, TypeError) as error:
        logger.info("contract.unreadable error=%s", type(error).__name__)
        return None

"""Finds where a text violates a JSON schema. Imports no framework, because it also runs in a process of its own."""

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
    """Returns the index of the first text that violates the schema; None if all match or `schema` is no schema."""
    validator = _validator(schema) if len(schema) <= _MAX_CACHED_SCHEMA_BYTES else _compiled(schema)
    if validator is None:
        return None
    return next((index for index, content in enumerate(contents) if not _is_valid(validator, content)), None)


def reason(schema: bytes, content: str) -> str:
    """The reason does not quote the text. It takes far longer to find than the violation."""
    try:
        instance = json.loads(content)
    except (ValueError, RecursionError):
        return "not JSON"
    try:
        validator = _validator(schema) if len(schema) <= _MAX_CACHED_SCHEMA_BYTES else _compiled(schema)
        validator.validate(instance)
    except jsonschema_rs.ValidationError as error:
        # The path is that within the schema, which is the request's own; a path within the content would quote its
        # names.
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
    """None for an invalid schema, which providers refuse or answer as they see fit."""
    try:
        # The validator is offline: a reference in a schema must not make the gateway call an address.
        return jsonschema_rs.validator_for(
            json.loads(schema), offline=True, pattern_options=_PATTERNS, validate_formats=False
        )
    except (ValueError, RecursionError, TypeError) as error:
        logger.info("contract.unreadable error=%s", type(error).__name__)
        return None

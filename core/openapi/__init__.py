"""How views say what they take and answer: `from core.openapi import operation`."""

from __future__ import annotations

from core.openapi.operations import PAGE, operation, page_parameters

__all__ = ["PAGE", "operation", "page_parameters"]

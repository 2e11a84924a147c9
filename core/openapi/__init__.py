from __future__ import annotations

from core.openapi.operations import JSON, PAGE, operation, page_parameters, query_of, requires_body

__all__ = ["JSON", "PAGE", "operation", "page_parameters", "query_of", "requires_body"]

"""The hosts that serve Claude besides the vendor, and the differences of requests to them from the vendor's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Host:
    """A host of Claude. `version` stands in the body instead of a header, and the model in the address instead of the
    body; it is empty for a host that follows the vendor. `fetches` means that the host fetches images and documents by
    address. `betas` maps the beginning of a tool's type to the beta feature that announces it."""

    version: str = ""
    fetches: bool = True
    betas: Mapping[str, str] = field(default_factory=dict)

    def body(self, body: Json) -> Json:
        if not self.version:
            return body
        return {"anthropic_version": self.version, **{name: value for name, value in body.items() if name != "model"}}

    def betas_of(self, body: Json) -> list[str]:
        """Returns the beta features that the body needs at this host only."""
        kinds = [str(tool.get("type")) for tool in body.get("tools") or ()] if self.betas else ()
        return [beta for start, beta in self.betas.items() if any(kind.startswith(start) for kind in kinds)]


OWN = Host()
# The source is https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude,
# …/claude/web-search; for files by address it is https://platform.claude.com/docs/en/build-with-claude/vision
VERTEX_AI = Host(version="vertex-2023-10-16", fetches=False, betas={"web_search_": "web-search-2025-03-05"})

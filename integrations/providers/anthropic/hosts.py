from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Host:
    """A host of Claude. `version` goes into the body instead of a header, and the model into the address instead of the
    body; it is empty for a host that follows the vendor. `fetches`: the host fetches images and documents by address.
    `betas` maps the prefix of a tool's type to its beta feature."""

    version: str = ""
    fetches: bool = True
    betas: Mapping[str, str] = field(default_factory=dict)

    def body(self, body: Json) -> Json:
        if not self.version:
            return body
        return {"anthropic_version": self.version, **{name: value for name, value in body.items() if name != "model"}}

    def betas_of(self, body: Json) -> list[str]:
        kinds = [str(tool.get("type")) for tool in body.get("tools") or ()] if self.betas else ()
        return [beta for start, beta in self.betas.items() if any(kind.startswith(start) for kind in kinds)]


OWN = Host()
# The source is https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude,
# …/claude/web-search; for files by address it is https://platform.claude.com/docs/en/build-with-claude/vision
VERTEX_AI = Host(version="vertex-2023-10-16", fetches=False, betas={"web_search_": "web-search-2025-03-05"})

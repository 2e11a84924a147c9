"""Marks texts by other authors for the model, between markers that their authors cannot have known. Pure."""

from __future__ import annotations

import secrets

_TAKEN_OUT = "…"


class Fence:
    """The markers of one run."""

    def __init__(self, marker: str = "") -> None:
        self.marker = marker or secrets.token_hex(8)

    @property
    def start(self) -> str:
        return f"<data-{self.marker}"

    @property
    def end(self) -> str:
        return f"</data-{self.marker}>"

    def around(self, source: str, content: str) -> str:
        """Returns `content` between the markers. An occurrence of the marker is replaced: a run's requests are
        logged, and its tools may read the log while it runs. The replacement keeps the surrounding text from
        forming a marker."""
        return f'{self.start} source="{source}">\n{content.replace(self.marker, _TAKEN_OUT)}\n{self.end}'

"""Encloses texts by other authors, for the model, in markers that their authors cannot have known. Pure."""

from __future__ import annotations

import secrets

_TAKEN_OUT = "…"


class Fence:
    def __init__(self, marker: str = "") -> None:
        self.marker = marker or secrets.token_hex(8)

    @property
    def start(self) -> str:
        return f"<data-{self.marker}"

    @property
    def end(self) -> str:
        return f"</data-{self.marker}>"

    def around(self, source: str, content: str) -> str:
        """Replaces the marker inside `content`: a run's requests are logged, and its tools may read the log while it
        runs. The replacement cannot form a marker with the text around it."""
        return f'{self.start} source="{source}">\n{content.replace(self.marker, _TAKEN_OUT)}\n{self.end}'

"""How what other people wrote is shown to the model: between markers that none of them can have known. Pure."""

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
        """`content` as data. The marker itself is taken out of it: what a run asks is logged, and its tools may read
        the log while it runs. Something is left in its place, so that what stood around it is no marker either."""
        return f'{self.start} source="{source}">\n{content.replace(self.marker, _TAKEN_OUT)}\n{self.end}'

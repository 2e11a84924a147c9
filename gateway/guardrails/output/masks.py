from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple

from gateway.guardrails.detectors.exfiltration import ConversationIndex, find_exfiltration
from gateway.guardrails.detectors.invisible import INVISIBLE
from gateway.guardrails.detectors.pii import find_pii
from gateway.guardrails.verdicts import Guardrail

# The replacement is no word of a link: with a blank in it, Markdown makes neither an image nor a link of the rest.
LINK_REMOVED = "[LINK REMOVED]"

_SELECTORS = r"\ufe00-\ufe0f\U000e0100-\U000e01ef"
# Each row is a class of first characters and the pattern that has to follow. A text without any match holds no personal
# data: the rows are digits and signs, plain and as tag characters, two colons, letters spelled in variation selectors,
# and signs by the names that HTML has for them.
_PERSONAL = (
    (r"\d@\uff20\U000e0030-\U000e0040", ""),
    (r":\uff1a", f"[{INVISIBLE}]*[:\uff1a]"),
    (_SELECTORS, f"[{_SELECTORS}]{{3}}"),
    ("&", "[a-zA-Z]{2,31};"),
)
_LINK = ("/", "/")


def _any_of(kinds: Iterable[tuple[str, str]]) -> re.Pattern[str]:
    """Returns one pattern that begins with a single character class: the search is faster than for alternatives."""
    kinds = tuple(kinds)
    firsts = "".join(first for first, _ in kinds)
    return re.compile(f"[{firsts}](?:{'|'.join(f'(?<=[{first}]){rest}' for first, rest in kinds)})")


# Personal data may continue after a match of this pattern with nothing but words between. Full-width signs count as
# plain ones.
_OPENING = _any_of((*_PERSONAL, (r"+\uff0b", "")))
# These letters stand for a line break or a tab after a backslash, in JSON within the text.
_ESCAPED = frozenset("nrtbf")


class Mask(NamedTuple):
    start: int
    end: int
    text: str
    guardrail: Guardrail
    detail: str


class Masks:
    def __init__(self, *, personal_data: bool, links: bool, texts: Callable[[], Iterable[str]]) -> None:
        self._personal_data, self._links, self._texts = personal_data, links, texts
        kinds = [*(_PERSONAL if personal_data else ()), *([_LINK] if links else ())]
        self._suspect = _any_of(kinds) if kinds else None
        self.opening = _OPENING if personal_data else None

    @property
    def any(self) -> bool:
        return self._suspect is not None

    @property
    def will_read_texts(self) -> bool:
        return self._links and "_conversation" not in self.__dict__

    def suspects(self, text: str, start: int, end: int) -> bool:
        return self._suspect is not None and self._suspect.search(text, start, end) is not None

    def find(self, text: str) -> list[Mask]:
        links = self._find_links(text) if self._links and "//" in text else []
        if not self._personal_data:
            return links
        found = list(links)
        for kind, start, end in find_pii(text):
            if any(link.start < end and start < link.end for link in links):
                continue
            if start and text[start - 1] == "\\" and text[start] in _ESCAPED:
                start += 1
            found.append(Mask(start, end, f"[{kind.value.upper()}]", Guardrail.PII, kind.value))
        return sorted(found)

    @cached_property
    def _conversation(self) -> ConversationIndex:
        return ConversationIndex(self._texts())

    def _find_links(self, text: str) -> list[Mask]:
        return [
            Mask(link.start, link.end, LINK_REMOVED, Guardrail.EXFILTRATION_URL, link.form.value)
            for link in find_exfiltration(text, self._conversation)
        ]

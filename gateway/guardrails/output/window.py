"""A sliding window over one text of an answer. Pieces may be cut anywhere; the output depends on the text alone.

Text goes out up to a blank that no finding can extend across. For personal data that is a blank with no digit and no
sign of an address (`@`, `+`, `::`) among the 64 characters before it, more than any detector reads on. Each stretch is
searched together with the text before it. If 1024 characters have no such blank, the text is cut at a place that no
finding covers, with 330 characters more to read: no address is longer.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from gateway.guardrails.detectors.invisible import INVISIBLE
from gateway.guardrails.output.masks import Mask, Masks
from gateway.guardrails.output.topics import TopicGate
from gateway.guardrails.verdicts import Guardrail

MAX_HELD = 1024
_CALM, _MAX_MATCH = 64, 330
# The characters before a stretch that are searched with it: words that label a number, and the distance from `![` to an
# address.
_CONTEXT, _CONTEXT_OF_LINKS = 192, 2048
_RETAINED = _CONTEXT_OF_LINKS + _CALM
_TRIM_AT = 4 * _RETAINED


def borders(signs: str) -> re.Pattern[str]:
    """A sign after an invisible character is no border: a finding may contain any number of these characters."""
    return re.compile(f"[{signs}](?<![{INVISIBLE}][{signs}])")


_BLANK = borders(r"\s")


class Notes:
    def __init__(self) -> None:
        self.masked: dict[tuple[Guardrail, str], None] = {}
        self.topics: dict[str, None] = {}


class TextWindow:
    border = _BLANK

    def __init__(self, masks: Masks, topics: tuple[str, ...], notes: Notes) -> None:
        self._masks, self._notes = masks, notes
        self._gate = TopicGate(topics) if topics else None
        self._text = ""  # `_text` is the end of the text that went out, and the text that is held.
        self._before = 0  # `_before` counts the characters that were dropped from `_text`.
        self._given = 0  # `_given` counts the characters of `_text` that went out.
        self._searched = 0  # The text cannot be cut between the offsets `_given` and `_searched` of `_text`.
        self._cut_mask = False  # `_cut_mask` is True if the last stretch ended in a masked finding.
        self.masked = False

    def feed(self, text: str) -> str:
        self._text += text
        return self._give(text, final=False)

    def finish(self) -> str:
        return self._give("", final=True)

    def _give(self, text: str, *, final: bool) -> str:
        limit = len(self._text)
        if self._gate is not None:
            limit = self._gate.feed(text, final=final) - self._before
            self._notes.topics.update(dict.fromkeys(self._gate.found))
        if not self._masks.any:
            out = self._between(self._given, max(limit, self._given))
            self._given = max(limit, self._given)
        else:
            out = "".join(self._stretches(limit, final=final))
        if self._given > _TRIM_AT:
            self._forget(self._given - _RETAINED)
        return out

    def _stretches(self, limit: int, *, final: bool) -> list[str]:
        out: list[str] = []
        while self._given < limit:
            far = self._given + MAX_HELD
            if final and len(self._text) <= far:
                cut, seen = len(self._text), len(self._text)
            else:
                cut = seen = self._border_before(min(far, len(self._text)), limit)
            found = None
            if cut == self._given and len(self._text) >= far and self._border_before(far, far) == self._given:
                seen, found = far, self._found(far)
                cut = self._forced_cut(far, found)
            if not self._given < cut <= limit:
                break
            out.append(self._rendered(cut, seen, found))
        return out

    def _border_before(self, end: int, limit: int) -> int:
        text, given = self._text, self._given
        start, end = max(given, self._searched), min(end, limit)
        opening = self._masks.opening
        marks = [] if opening is None else [m.end() for m in opening.finditer(text, max(0, start - _CALM), end)]
        borders = [m.end() for m in self.border.finditer(text, start, end)]
        while borders:
            border = borders.pop()
            index = bisect_left(marks, border + 1) - 1
            if index < 0 or border - marks[index] > _CALM:
                return border
            # This mark disturbs every border behind its first character, so those borders are skipped together.
            del borders[bisect_left(borders, marks[index]) :]
        self._searched = max(end, self._searched)
        return given

    def _forced_cut(self, far: int, found: list[Mask]) -> int:
        text, given, last = self._text, self._given, far - _MAX_MATCH
        blanks = [m.end() for m in self.border.finditer(text, given, last)]
        calm = [b for b in blanks if not (text[b].isdigit() or text[max(b - 2, 0)].isdigit())]
        cut = next((b for b in reversed(calm or blanks) if not any(m.start < b < m.end for m in found)), last)
        for mask in found:
            if mask.start < cut < mask.end:
                return mask.start if mask.start > given else mask.end
        return cut

    def _rendered(self, cut: int, seen: int, known: list[Mask] | None) -> str:
        """Masks the stretch up to `cut`; the search reads the text up to `seen`.

        `known` holds the findings of a text that is cut by force, which has been searched already.
        """
        given, was_cut = self._given, self._cut_mask
        if not was_cut and not self._masks.suspects(self._text, given, cut):
            self._given = cut
            return self._between(given, cut)
        found = self._found(seen) if known is None else known
        self._given, self._cut_mask = cut, False
        out: list[str] = []
        at = given
        for mask in found:
            if mask.end <= at or mask.start >= cut:
                continue
            start, end = self._whole(max(mask.start, at), min(mask.end, cut))
            out.append(self._between(at, max(start, at)))
            if not (mask.start < given and was_cut):
                out.append(self._instead(max(start, at), end, mask))
                self._notes.masked[mask.guardrail, mask.detail] = None
            self.masked, at = True, end
            self._cut_mask = known is not None and mask.end == cut == seen
        out.append(self._between(at, cut))
        return "".join(out)

    def _found(self, seen: int) -> list[Mask]:
        far_back = self._cut_mask or "//" in self._text[self._given : seen]
        start = max(0, self._given - (_CONTEXT_OF_LINKS if far_back else _CONTEXT))
        return [
            mask._replace(start=mask.start + start, end=mask.end + start)
            for mask in self._masks.find(self._text[start:seen])
        ]

    def _forget(self, count: int) -> None:
        self._text = self._text[count:]
        self._given -= count
        self._searched -= count
        self._before += count

    # JsonWindow overrides the three methods below, because its text is a notation of another text.

    def _between(self, start: int, end: int) -> str:
        return self._text[start:end]

    def _whole(self, start: int, end: int) -> tuple[int, int]:
        return start, end

    def _instead(self, start: int, end: int, mask: Mask) -> str:
        return mask.text

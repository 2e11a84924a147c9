from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from gateway.surfaces.checks import Json
from gateway.surfaces.gemini.foreign import sealed
from gateway.surfaces.shapes import ToolCall
from integrations.providers.google.messages import FORMAT, stretch_of
from integrations.providers.google.specifics import Place

# What a model has written in place of JSON.
_NOT_JSON = "INVALID_JSON"
_decode = msgspec.json.Decoder().decode


def call_part(call_id: str, name: str, arguments: str) -> Json:
    """Arguments that are not JSON (the answer was cut off) become the value of one field."""
    try:
        decoded = _decode(arguments or "{}")
    except msgspec.DecodeError:
        decoded = None
    args = decoded if isinstance(decoded, dict) else {_NOT_JSON: arguments}
    return {"functionCall": {"id": call_id, "name": name, "args": args}}


def part_of_call(call: ToolCall) -> Json:
    function = call.function
    name, arguments = (function.name or "", function.arguments or "") if function is not None else ("", "")
    return call_part(call.id or "", name, arguments)


def image_part(image: Mapping[str, Any]) -> Json | None:
    held = image.get("image_url")
    url = held.get("url") if isinstance(held, dict) else None
    if not isinstance(url, str) or not url.startswith("data:"):
        return None
    head, _, data = url.partition(",")
    return {"inlineData": {"mimeType": head[5:].partition(";")[0], "data": data}}


def own_part(entry: Any) -> tuple[Place, Json] | None:
    place = entry.get("place") if isinstance(entry, dict) else None
    if not isinstance(place, dict):
        return None
    part = {name: value for name, value in entry.items() if name not in ("place", "index")}
    return Place(*(int(place.get(name) or 0) for name in Place._fields)), part


class Signatures:
    """The signatures that vendors want back with one answer. Google's stand with the part that each names; others are
    sealed together."""

    __slots__ = ("_foreign", "_owned", "_unowned")

    def __init__(self) -> None:
        self._owned: dict[str, str] = {}
        self._foreign: list[Mapping[str, Any]] = []
        self._unowned: list[str] = []

    def add(self, details: Iterable[Mapping[str, Any]]) -> None:
        for detail in details:
            if detail.get("format") != FORMAT:
                self._foreign.append({name: value for name, value in detail.items() if value not in (None, "")})
            elif signature := str(detail.get("data") or detail.get("signature") or ""):
                owner = str(detail.get("id") or "")
                if owner:
                    self._owned[owner] = signature
                else:
                    self._unowned.append(signature)

    def of(self, owner: str) -> str:
        """Empty without a signature; each is returned once."""
        return self._owned.pop(owner, "")

    def stretches(self) -> list[tuple[int, int, str]]:
        """The start and end of each signed passage, with its signature; each is returned once."""
        found = [(*stretch, owner) for owner in self._owned if (stretch := stretch_of(owner)) is not None]
        return [(start, end, self._owned.pop(owner)) for start, end, owner in found]

    def left(self) -> list[str]:
        found = [*self._owned.values(), *self._unowned]
        self._owned, self._unowned = {}, []
        return found

    def seal(self) -> str:
        """The seal of the other vendors' entries, empty without any; returned once."""
        foreign, self._foreign = self._foreign, []
        return sealed(_joined(foreign)) if any(map(_says_something, foreign)) else ""


def signed_calls(calls: Sequence[Json], signatures: Signatures) -> list[Json]:
    """The first call gets a seal if Google has not signed it: Google refuses a later request with an unsigned call."""
    made = []
    for number, part in enumerate(calls):
        signature = signatures.of(part["functionCall"]["id"])
        if not number:
            signature = signature or signatures.seal() or sealed(())
        made.append({**part, "thoughtSignature": signature} if signature else part)
    return made


def _says_something(detail: Mapping[str, Any]) -> bool:
    return any(detail.get(name) for name in ("text", "summary", "signature", "data"))


def _joined(details: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Joins entries that came in pieces: a stream repeats an entry's index."""
    found: list[Json] = []
    for detail in details:
        last = found[-1] if found else None
        if last is None or last.get("type") != detail.get("type") or last.get("index") != detail.get("index"):
            found.append(dict(detail))
            continue
        for name, value in detail.items():
            is_text = name in ("text", "summary", "data") and isinstance(value, str)
            last[name] = f"{last.get(name) or ''}{value}" if is_text else value
    return found

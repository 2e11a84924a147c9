"""Guards a streamed answer: decides which text of each event may go out now.

Events without text pass at once and byte for byte. Events with text go out with the text that their windows release; an
event with no text left is dropped. Held text goes out before the finish reason of its choice.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.guardrails.output.answer import OutputChecks, Path, comes_in_pieces, is_text
from gateway.guardrails.output.window import TextWindow
from integrations.providers.base import StreamEvent
from integrations.providers.common.surrogates import lenient

_decode = lenient(msgspec.json.Decoder(dict[str, Any]).decode)
_encode = msgspec.json.Encoder().encode
# These fields say where and what something is, and hold no text.
_EMPTY = frozenset({"index", "type", "format"})
# A chunk's value of this field is complete: a client replaces the field, or appends to its lists.
_WHOLE = "provider_specific_fields"
_CALLS: Path = ("tool_calls",)


class _Choice:
    def __init__(self) -> None:
        self.windows: dict[Path, TextWindow] = {}
        self.kinds: dict[Path, dict[str, Any]] = {}
        self.has_role = False
        self.has_called = False


class StreamGuard:
    def __init__(self, checks: OutputChecks) -> None:
        self._checks = checks
        self._choices: dict[int, _Choice] = {}
        self._base: dict[str, Any] = {}

    def feed(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """Returns the events that may go out now. The caller checks `checks.blocking()` before it sends them."""
        out: list[StreamEvent] = []
        for event in events:
            out += self._guarded(event)
        return out

    def close(self, last: list[StreamEvent]) -> list[StreamEvent]:
        return [*self.feed(last[:-1]), *self._rest(self._choices), *self.feed(last[-1:])]

    def _guarded(self, event: StreamEvent) -> list[StreamEvent]:
        fields = _decode(event.data)
        choices = fields.pop("choices", None)
        if fields.get("id"):
            self._base = {name: value for name, value in fields.items() if name != "usage"}
        changed = self._checks.reads_texts and self._checks.guard_value(fields)
        out: list[StreamEvent] = []
        remaining: list[Any] = []
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict) or not isinstance(choice.get("delta"), dict):
                remaining.append(choice)
                continue
            ended, differs, is_left = self._guard_choice(choice)
            out += ended
            changed |= differs
            if is_left:
                remaining.append(choice)
        if choices and not remaining and not fields.get("usage"):
            return out
        if not changed:
            return [*out, event]
        has_output = any(
            _has_text(choice["delta"]) for choice in remaining if isinstance(choice, dict) and "delta" in choice
        )
        data = _encode({**fields, "choices": remaining})
        return [*out, msgspec.structs.replace(event, data=data, has_output=event.has_output and has_output)]

    def _guard_choice(self, fields: dict[str, Any]) -> tuple[list[StreamEvent], bool, bool]:
        """Returns the events to send before this one, whether the choice changed, and whether some of it is left."""
        index = fields.get("index")
        index = index if isinstance(index, int) else 0
        choice = self._choices.setdefault(index, _Choice())
        delta, ends = fields["delta"], fields.get("finish_reason") is not None
        self._checks.inspect_calls(delta)
        if not self._checks.reads_texts:
            return [], False, True
        before: list[StreamEvent] = []
        if delta.get("tool_calls") and not choice.has_called:
            # Clients take a tool call for the end of the text before it, so held text goes out first.
            choice.has_called = True
            before = self._rest({index: choice})
        had_text = _has_text(delta)
        changed = self._guard_delta(choice, delta, ())
        # Log probabilities list tokens, which would spell the text that was masked or is held.
        if fields.get("logprobs") is not None:
            fields["logprobs"], changed = None, True
        if ends and _has_text(delta):
            _finish_into(delta, choice)
        elif ends:
            before += self._rest({index: choice})
        is_new = delta.get("role") is not None and not choice.has_role
        choice.has_role |= is_new
        return before, changed, ends or is_new or not had_text or _has_text(delta)

    def _guard_delta(self, choice: _Choice, value: dict[str, Any], path: Path) -> bool:
        changed = False
        for name, item in list(value.items()):
            if not is_text(name):
                continue
            here = (*path, name)
            if name == _WHOLE:
                changed |= self._checks.guard_value(item, name)
            elif isinstance(item, str):
                masked = self._given(choice, here, item)
                changed |= masked != item
                value[name] = masked
            elif isinstance(item, dict):
                changed |= self._guard_delta(choice, item, here)
            elif isinstance(item, list):
                changed |= self._guard_list(choice, item, here)
        return changed

    def _given(self, choice: _Choice, path: Path, text: str) -> str:
        name = str(path[-1])
        if not comes_in_pieces(name):
            return self._checks.masked(text, name) if text else text
        window = choice.windows.get(path)
        if window is None:
            if not text:
                return text
            window = choice.windows[path] = self._checks.window(name)
        return window.feed(text)

    def _guard_list(self, choice: _Choice, items: list[Any], path: Path) -> bool:
        changed = False
        for item in items:
            if not isinstance(item, dict):
                continue
            index = item.get("index")
            here = (*path, index if isinstance(index, int) else None)
            # The type of a call stands in its first delta alone.
            names = ("index",) if path == _CALLS else ("index", "type", "format")
            choice.kinds[here] = {name: item[name] for name in names if name in item}
            changed |= self._guard_delta(choice, item, here)
            if "signature" in item:
                changed |= _signed(choice, item, here)
        return changed

    def _rest(self, choices: dict[int, _Choice]) -> list[StreamEvent]:
        out: list[StreamEvent] = []
        for index, choice in choices.items():
            delta: dict[str, Any] = {}
            _finish_into(delta, choice)
            if delta:
                rest = [{"index": index, "delta": delta, "finish_reason": None}]
                out.append(StreamEvent(_encode({**self._base, "choices": rest}), has_output=True))
        return out


def _finish_into(delta: dict[str, Any], choice: _Choice) -> None:
    for path, window in choice.windows.items():
        rest = window.finish()
        if rest:
            _put(delta, path, rest, choice.kinds)


def _signed(choice: _Choice, item: dict[str, Any], path: Path) -> bool:
    changed = masked = False
    for where, window in choice.windows.items():
        if where[: len(path)] == path:
            rest, name = window.finish(), str(where[-1])
            if rest:
                item[name] = (item.get(name) or "") + rest
            changed |= bool(rest)
            masked |= window.masked
    if masked:
        del item["signature"]
    return changed or masked


def _put(delta: dict[str, Any], path: Path, text: str, kinds: dict[Path, dict[str, Any]]) -> None:
    value, depth = delta, 0
    while depth < len(path) - 1:
        name, following = str(path[depth]), path[depth + 1]
        if isinstance(following, str):
            value, depth = value.setdefault(name, {}), depth + 1
        else:
            value = _item_of(value.setdefault(name, []), kinds[path[: depth + 2]])
            depth += 2
    name = str(path[-1])
    value[name] = (value.get(name) or "") + text


def _item_of(items: list[Any], kind: dict[str, Any]) -> dict[str, Any]:
    same = [item for item in items if isinstance(item, dict) and item.get("index") == kind.get("index")]
    if same:
        return same[-1]
    items.append(dict(kind))
    made: dict[str, Any] = items[-1]
    return made


def _has_text(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_text(item) for name, item in value.items() if name not in _EMPTY and name != "role")
    if isinstance(value, list):
        return any(_has_text(item) for item in value)
    return bool(value)

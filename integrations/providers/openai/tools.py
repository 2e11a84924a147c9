"""Repairs the tool calls of a stream, of which vendors repeat or omit parts: each call gets one index, its id, type and
name once, and arguments that are JSON text."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from integrations.providers.openai.shapes import NO_ARGUMENTS, ToolCallDelta, arguments_text, made_up_id

_EMPTY = {"arguments": NO_ARGUMENTS}


class _Call:
    """`index`, `id` and `name` are the vendor's. `end` is the last character of the arguments other than white space,
    empty before they begin. `is_function` is False for a custom tool, whose input is free text. `held` is the first
    delta until the name comes: clients read the name only there."""

    __slots__ = ("end", "held", "id", "index", "is_function", "name")

    def __init__(self, index: Any, call_id: Any, *, is_function: bool = True) -> None:
        self.index, self.id, self.is_function = index, call_id, is_function
        self.name = self.end = ""
        self.held: dict[str, Any] | None = None

    def add(self, text: str) -> None:
        self.end = text.rstrip()[-1:] or self.end

    def take(self, inner: dict[str, Any], *, is_first: bool) -> None:
        name, text = inner.get("name"), inner.get("arguments") or ""
        if not is_first and (not name or name == self.name):
            inner.pop("name", None)
        if text.isspace() and not self.end:
            # Clients read each beginning of the arguments as JSON, of which blanks are none.
            inner["arguments"] = ""
        self.add(text)
        if isinstance(name, str) and name != self.name:
            self.name += name  # A name may come in pieces.

    def release(self, delta: dict[str, Any]) -> dict[str, Any] | None:
        held, inner = self.held, _inner(delta)
        if held is None:
            return delta
        begun, field = _inner(held), "arguments" if self.is_function else "input"
        if begun is not inner:
            begun[field] = (begun.get(field) or "") + (inner.get(field) or "")
        if not self.name:
            return None
        begun["name"], self.held = self.name, None
        return held

    def ends_before(self, text: str) -> bool:
        return self.end == "}" and text.lstrip()[:1] == "{"


class ToolCalls:
    """The calls of one stream. `accept` checks well-formed deltas, `rewrite` repairs any; after the repair of an index,
    all later deltas are repaired too."""

    __slots__ = ("_calls", "_functions", "_repairing")

    def __init__(self) -> None:
        self._functions: dict[int, _Call] = {}  # `_functions` maps a choice to its call of the older `functions`.
        self._calls: dict[int, list[_Call]] = {}  # `_calls` maps a choice to its calls, by the index that clients see.
        self._repairing = False

    def called(self, choice: int) -> bool:
        return choice in self._calls

    def accept(self, choice: int, deltas: list[ToolCallDelta]) -> bool:
        """False if deltas need repair: a call's first one needs an index and id of its own, a type, and arguments; the
        others have neither id, type nor name."""
        if self._repairing:
            return False
        calls = self._calls.setdefault(choice, [])
        known = len(calls)
        for delta in deltas:
            if delta.index == len(calls) and _begins_well(delta, calls):
                calls.append(_begun(delta))
            elif not 0 <= delta.index < len(calls) or not _goes_on_well(delta, calls[delta.index]):
                del calls[known:]
                return False
        for delta in deltas:
            if delta.function:
                calls[delta.index].add(delta.function.arguments or "")
        return True

    def rewrite(self, choice: int, deltas: list[Any], seed: str) -> None:
        """Repairs deltas in place: each gets its index and its arguments as text; only a call's first one has id, type
        and name. `seed` identifies the answer."""
        calls = self._calls.setdefault(choice, [])
        fitted = (
            self._rewrite(calls, delta, made_up_id(seed, choice, len(calls))) if isinstance(delta, dict) else delta
            for delta in deltas
        )
        deltas[:] = [delta for delta in fitted if delta is not None]

    def rewrite_function(self, choice: int, function: dict[str, Any]) -> None:
        call = self._functions.get(choice)
        is_first = call is None
        if call is None:
            call = self._functions[choice] = _Call(0, "")
        function["arguments"] = arguments_text(function.get("arguments"))
        call.take(function, is_first=is_first)

    def missing_arguments(self) -> list[tuple[int, dict[str, Any]]]:
        """A choice and its delta for each choice with calls of functions whose arguments never came, and for each with
        calls whose name never came."""
        missing: list[tuple[int, dict[str, Any]]] = []
        for choice, calls in self._calls.items():
            if held := [call.held for call in calls if call.held is not None]:
                missing.append((choice, {"tool_calls": held}))
            silent = [index for index, call in enumerate(calls) if call.is_function and not call.end]
            if silent:
                missing.append((choice, {"tool_calls": [{"index": index, "function": _EMPTY} for index in silent]}))
        missing += [(choice, {"function_call": _EMPTY}) for choice, call in self._functions.items() if not call.end]
        return missing

    def _rewrite(self, calls: list[_Call], delta: dict[str, Any], made_up: str) -> dict[str, Any] | None:
        inner = _inner(delta)
        name, text = inner.get("name"), inner.get("arguments") or ""
        position = self._position(calls, delta.get("index"), delta.get("id"), name, text)
        is_first = position is None
        if position is None:
            position = len(calls)
            self._begin(calls, delta, made_up)
        else:
            for field in ("id", "type"):
                delta.pop(field, None)
        delta["index"] = position
        call = calls[position]
        if is_first and not name:
            call.held = delta
        call.take(inner, is_first=is_first)
        return call.release(delta)

    def _begin(self, calls: list[_Call], delta: dict[str, Any], made_up: str) -> None:
        index, call_id, is_function = delta.get("index"), delta.get("id"), "custom" not in delta
        self._repairing = self._repairing or index != len(calls)
        if not isinstance(call_id, str) or not call_id or any(call.id == call_id for call in calls):
            delta["id"] = made_up
        delta["type"] = delta.get("type") or ("function" if is_function else "custom")
        if is_function and not isinstance(delta.get("function"), dict):
            delta["function"] = {}
        if is_function:
            delta["function"].setdefault("arguments", "")
        calls.append(_Call(index, call_id, is_function=is_function))

    @staticmethod
    def _position(calls: list[_Call], index: Any, call_id: Any, name: Any, text: str) -> int | None:
        by_id = _last(calls, "id", call_id) if call_id else None
        by_index = _last(calls, "index", index) if isinstance(index, int) else None
        if by_index is None:
            is_numbered = isinstance(index, int)
            if by_id is None:
                return None if name and (call_id or is_numbered) else _latest(calls, name, text)
            return None if name and (is_numbered or calls[by_id].ends_before(text)) else by_id
        call = calls[by_index]
        if not call_id or not call.id or call.id == call_id:
            return None if name and call.ends_before(text) else by_index
        # Old versions of vLLM give each delta a fresh id, but name the function only in the first.
        return by_id if by_id is not None else None if name else by_index


def _latest(calls: list[_Call], name: Any, text: str) -> int | None:
    if not calls:
        return None
    call = calls[-1]
    if not name or call.held is not None:
        return len(calls) - 1
    # A vendor that gives its calls ids would give a new one an id.
    goes_on = not call.ends_before(text) if call.id else call.end not in ("", "}")
    return len(calls) - 1 if call.name == name and goes_on else None


def _begins_well(delta: ToolCallDelta, calls: list[_Call]) -> bool:
    function = delta.function
    if not delta.id or not delta.type or any(call.id == delta.id for call in calls):
        return False
    inner = function or delta.custom
    if inner is None or not inner.name:
        return False
    return function is None or (function.arguments is not UNSET and not function.arguments.isspace())


def _begun(delta: ToolCallDelta) -> _Call:
    call = _Call(delta.index, delta.id, is_function=delta.function is not None)
    inner = delta.function or delta.custom
    call.name = (inner.name or "") if inner else ""
    return call


def _goes_on_well(delta: ToolCallDelta, call: _Call) -> bool:
    if delta.id is not UNSET or delta.type is not UNSET or call.held is not None:
        return False
    function = delta.function
    if function is None:
        return delta.custom is None or delta.custom.name is UNSET
    return function.name is UNSET and (bool(call.end) or not function.arguments or not function.arguments.isspace())


def _inner(delta: dict[str, Any]) -> dict[str, Any]:
    for kind in ("custom", "function"):
        inner = delta.get(kind)
        if isinstance(inner, dict):
            if kind == "function" and "arguments" in inner:
                inner["arguments"] = arguments_text(inner["arguments"])
            return inner
    return {}


def _last(calls: list[_Call], field: str, value: Any) -> int | None:
    for position in range(len(calls) - 1, -1, -1):
        if getattr(calls[position], field) == value:
            return position
    return None

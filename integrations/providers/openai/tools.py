"""Gives the tool calls of a stream one distinct, stable index and id each, also where vendors repeat or omit them."""

from __future__ import annotations

from typing import Any

from integrations.providers.openai.shapes import ToolCallDelta, arguments_text, made_up_id


class ToolIndexes:
    """The indexes of one stream's calls. `accept` checks well-formed deltas, `rewrite` repairs any; after a repair all
    later deltas are repaired too."""

    __slots__ = ("_calls", "_repairing")

    def __init__(self) -> None:
        self._calls: dict[int, list[str]] = {}  # `_calls` maps a choice to the ids of its calls, by index.
        self._repairing = False

    def called(self, choice: int) -> bool:
        return choice in self._calls

    def accept(self, choice: int, deltas: list[ToolCallDelta]) -> bool:
        """Returns False when the deltas cannot stay as they are: a new call under an index that another has, or without
        an id of its own."""
        if self._repairing:
            return False
        calls = self._calls.setdefault(choice, [])
        known = len(calls)
        for delta in deltas:
            if delta.index == len(calls):
                if not delta.id or delta.id in calls:
                    del calls[known:]
                    return False
                calls.append(delta.id)
            elif not 0 <= delta.index < len(calls) or self._is_new(
                calls[delta.index], delta.id, delta.function.name if delta.function else None
            ):
                self._repairing = True
                del calls[known:]
                return False
        return True

    def rewrite(self, choice: int, deltas: list[Any], seed: str) -> None:
        """Gives every delta its index and its arguments as text, and a call its id, in place. `seed` identifies the
        answer."""
        calls = self._calls.setdefault(choice, [])
        for delta in deltas:
            if not isinstance(delta, dict):
                continue
            function = delta.get("function")
            name = function.get("name") if isinstance(function, dict) else None
            if isinstance(function, dict) and "arguments" in function:
                function["arguments"] = arguments_text(function["arguments"])
            known = len(calls)
            delta["index"] = index = self._index(calls, delta.get("index"), delta.get("id"), name)
            if index == known and (not calls[index] or calls[index] in calls[:index]):
                delta["id"] = calls[index] = made_up_id(seed, choice, index)

    def _index(self, calls: list[str], index: Any, call_id: Any, name: Any) -> int:
        known = index if isinstance(index, int) and 0 <= index < len(calls) else None
        if not self._repairing and known is not None and not self._is_new(calls[known], call_id, name):
            return known
        starts = bool(name) and index == len(calls) and not self._repairing
        if call_id and call_id in calls and not starts:
            return calls.index(call_id)
        if calls and not name:
            # The delta continues the call that it names, or the latest one.
            return known if known is not None and not self._repairing else len(calls) - 1
        self._repairing = self._repairing or index != len(calls)
        calls.append(call_id if isinstance(call_id, str) else "")
        return len(calls) - 1

    @staticmethod
    def _is_new(known_id: str, call_id: Any, name: Any) -> bool:
        """Returns True when the delta begins a call. Old versions of vLLM give each delta a fresh id, but name the
        function only in the first."""
        return bool(call_id and name and known_id and call_id != known_id)

"""Changes that vendors make to their answers from one day to the next, or at single endpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from tests.integrations.mutations.wire import Event

Json = dict[str, Any]
Change = Callable[[list[Event], str, Random], list[Event]]

UNKNOWN_REASON = "reason_of_tomorrow"
_ID = ("id", "responseId")
_REASONS = ("finish_reason", "stop_reason", "finishReason", "stopReason")
_COUNTED = ("usage", "usageMetadata", "x_groq", "meta")
_BLOCKS = ("content", "parts")


def ids_are_odd(events: list[Event], form: str, random: Random) -> list[Event]:
    """Makes ids empty, null, absent, or different in each event."""
    how = random.choice(["empty", "null", "missing", "changing"])
    for number, answer in enumerate(_heads(events)):
        for name in _ID:
            if isinstance(answer.get(name), str):
                _set(answer, name, {"empty": "", "null": None, "changing": f"{answer[name]}-{number}"}, how)
    return events


def created_is_odd(events: list[Event], form: str, random: Random) -> list[Event]:
    how = random.choice(["zero", "null", "missing", "changing"])
    for number, answer in enumerate(_heads(events)):
        if "created" in answer:
            _set(answer, "created", {"zero": 0, "null": None, "changing": 1700000000 + number}, how)
    return events


def counts_are_odd(events: list[Event], form: str, random: Random) -> list[Event]:
    """Makes some counts null, zero or absent."""
    for counted in _usages(events):
        for holder in _objects(counted):
            for name in [name for name, value in holder.items() if type(value) is int]:
                if random.random() < 0.5:
                    _set(holder, name, {"zero": 0, "null": None}, random.choice(["zero", "null", "missing"]))
    return events


def usage_is_missing(events: list[Event], form: str, random: Random) -> list[Event]:
    how = random.choice(["null", "missing", "empty"])
    for holder in (one for event in events for one in _objects(event.data)):
        for name in _COUNTED:
            if isinstance(holder.get(name), dict):
                _set(holder, name, {"null": None, "empty": {}}, how)
    return events


def counts_are_texts(events: list[Event], form: str, random: Random) -> list[Event]:
    """Makes counts texts, floats, or something that is no count."""
    ways: list[Callable[[int], Any]] = [str, str, float, bool, lambda count: -1, lambda count: "many", lambda _: []]
    how = random.choice(ways)
    for counted in _usages(events):
        for holder in _objects(counted):
            for name in [name for name, value in holder.items() if type(value) is int]:
                holder[name] = how(holder[name])
    return events


def counts_are_renamed(events: list[Event], form: str, random: Random) -> list[Event]:
    """Gives counts the names that other vendors have for them, or names that none has."""
    names = random.choice([_RESPONSES, _BEDROCK, {}])
    for counted in _usages(events):
        for holder in _objects(counted):
            for name in [name for name, value in holder.items() if type(value) is int]:
                holder[names.get(name, name if names else f"{name}_of_tomorrow")] = holder.pop(name)
    return events


_RESPONSES = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
_BEDROCK = {"prompt_tokens": "inputTokens", "completion_tokens": "outputTokens", "total_tokens": "totalTokens"}
_TOTALS = ("total_tokens", "totalTokens", "totalTokenCount")


def total_is_alone(events: list[Event], form: str, random: Random) -> list[Event]:
    """Leaves nothing but the total of usage that has one."""
    for counted in list(_usages(events)):
        if total := [name for name in _TOTALS if name in counted]:
            for name in [name for name in counted if name not in total]:
                del counted[name]
    return events


def usage_is_no_object(events: list[Event], form: str, random: Random) -> list[Event]:
    value = random.choice(["many", [], [3], 7, True])
    for holder in [one for event in events for one in _objects(event.data)]:
        for name in _COUNTED:
            if isinstance(holder.get(name), dict):
                holder[name] = value
    return events


COUNTS: tuple[Change, ...] = (
    counts_are_odd,
    usage_is_missing,
    counts_are_texts,
    counts_are_renamed,
    total_is_alone,
    usage_is_no_object,
)
"""The changes of what an answer says it has used."""


def usage_has_moved(events: list[Event], form: str, random: Random) -> list[Event]:
    """Moves the usage to another event of the stream, or to all of them."""
    places = [event.data for event in events if isinstance(event.data, dict)]
    for holder in places:
        for name in _COUNTED:
            if name in holder and isinstance(holder[name], dict):
                chosen = places if random.random() < 0.3 else [random.choice(places)]
                usage = holder.pop(name)
                for place in chosen:
                    place.setdefault(name, dict(usage))
                return events
    return events


def keys_in_another_order(events: list[Event], form: str, random: Random) -> list[Event]:
    for holder in (one for event in events for one in _objects(event.data)):
        items = list(holder.items())
        random.shuffle(items)
        holder.clear()
        holder.update(items)
    return events


def reason_is_unknown(events: list[Event], form: str, random: Random) -> list[Event]:
    for holder in (one for event in events for one in _objects(event.data)):
        for name in _REASONS:
            if isinstance(holder.get(name), str):
                holder[name] = UNKNOWN_REASON
    return events


def fields_are_new(events: list[Event], form: str, random: Random) -> list[Event]:
    for holder in [one for event in events for one in _objects(event.data)]:
        if random.random() < 0.3 and not _is_called(holder):
            holder["tomorrow"] = random.choice([{"a": [1]}, "new", 1, None, []])
    return events


def blocks_are_new(events: list[Event], form: str, random: Random) -> list[Event]:
    """Adds an unknown kind of content block among the others."""
    for holder in [one for event in events for one in _objects(event.data)]:
        for name in _BLOCKS:
            blocks = holder.get(name)
            if isinstance(blocks, list) and all(isinstance(block, dict) for block in blocks):
                key = "hologram" if form == "frames" or name == "parts" else "type"
                new = {key: "hologram", "light": {"a": 1}} if key == "type" else {key: {"light": 1}}
                blocks.insert(random.randrange(len(blocks) + 1), new)
    return events


def events_are_new(events: list[Event], form: str, random: Random) -> list[Event]:
    """Adds events of unknown kinds; in dialects without kinds of events, chunks without content."""
    if form == "whole":
        return events
    for _ in range(random.randrange(1, 4)):
        events.insert(random.randrange(len(events)), _new_event(events, form))
    return events


def choices_are_empty(events: list[Event], form: str, random: Random) -> list[Event]:
    """Adds a chunk without choices, as Azure sends it for its filter, or removes the choices of a whole answer."""
    for name in ("choices", "candidates"):
        counted = [event.data for event in events if isinstance(event.data, dict) and name in event.data]
        if not counted:
            continue
        if form == "whole":
            counted[0][name] = []
            return events
        empty = {key: value for key, value in counted[0].items() if key not in _COUNTED} | {name: []}
        events.insert(random.randrange(len(events)), Event(empty))
    return events


CHANGES: tuple[Change, ...] = (
    ids_are_odd,
    created_is_odd,
    *COUNTS,
    usage_has_moved,
    keys_in_another_order,
    reason_is_unknown,
    fields_are_new,
    blocks_are_new,
    events_are_new,
    choices_are_empty,
)


def _set(holder: Json, name: str, values: Json, how: str) -> None:
    if how in values:
        holder[name] = values[how]
    else:
        del holder[name]


def _heads(events: list[Event]) -> Iterator[Json]:
    """Yields the objects that carry an answer's id: an event itself, and the message that Anthropic begins with."""
    for event in events:
        if isinstance(event.data, dict):
            yield event.data
            if isinstance(message := event.data.get("message"), dict):
                yield message


def _objects(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        inner = list(value.values())
        yield value
        for one in inner:
            yield from _objects(one)
    elif isinstance(value, list):
        for one in value:
            yield from _objects(one)


def _usages(events: list[Event]) -> Iterator[Json]:
    for holder in (one for event in events for one in _objects(event.data)):
        for name in _COUNTED:
            if isinstance(holder.get(name), dict):
                yield holder[name]


def _is_called(holder: Json) -> bool:
    """Returns True for the arguments of a call, which are the model's own output."""
    return not holder or "city" in holder


def _new_event(events: list[Event], form: str) -> Event:
    if form == "frames":
        return Event({"tomorrow": {"a": 1}}, "tomorrow")
    first = next(event for event in events if isinstance(event.data, dict))
    if "type" in first.data:
        return Event({"type": "tomorrow", "a": {"b": [1]}}, "tomorrow" if first.name else "")
    fields = {name: value for name, value in first.data.items() if name not in ("choices", "candidates", *_COUNTED)}
    return Event({**fields, "tomorrow": {"a": 1}})

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from analytics.request_log.columns import Columns
from analytics.shipper.columns import to_columns
from analytics.shipper.dead_letters import DeadLetters
from analytics.shipper.index_memory import count_fitting
from analytics.spool.reader import Frame, is_finished, read_stretch
from analytics.spool.shipper_state import Part, Plan


class Located(msgspec.Struct, frozen=True, gc=False):
    segment: Path
    frame: Frame


@dataclass(frozen=True)
class Planned:
    """`frames` are None if some bytes of the plan are damaged: `read_frames` then handles them."""

    plan: Plan
    frames: list[Located] | None


def next_plan(
    segments: Sequence[Path], offsets: Mapping[str, int], *, max_rows: int, max_bytes: int, memory: int
) -> Planned | None:
    """Returns the oldest unshipped bytes up to the limits, or None. `memory` is what the store has for an insert."""
    parts: list[Part] = []
    located: list[Located] = []
    damaged = False
    for segment in segments:
        start = offsets.get(segment.name, 0)
        if start >= segment.stat().st_size:
            continue
        finished = is_finished(segment)
        found = read_stretch(segment, start, finished=finished, max_frames=max_rows, max_bytes=max_bytes)
        if found.end > start:
            parts.append(Part(segment.name, start, found.end))
            located.extend([Located(segment, frame) for frame in found.frames])
            damaged = damaged or bool(found.damage)
            max_rows -= len(found.frames)
            max_bytes -= found.end - start
        if max_rows <= 0 or max_bytes <= 0:
            break
    count = count_fitting([item.frame for item in located], memory)
    if count < len(located):
        parts, located = _up_to(parts, located[count - 1]), located[:count]
    return Planned(Plan(tuple(parts)), None if damaged else located) if parts else None


def _up_to(parts: Sequence[Part], last: Located) -> list[Part]:
    names = [part.segment for part in parts]
    place = names.index(last.segment.name)
    return [*parts[:place], Part(parts[place].segment, parts[place].start, last.frame.end)]


def read_frames(directory: Path, plan: Plan, dead: DeadLetters) -> list[Located]:
    """Returns the frames in order. Damaged ranges become dead letters."""
    located: list[Located] = []
    for part in plan.parts:
        segment = directory / part.segment
        # The bytes of a plan do not change any more, so their damage is final.
        found = read_stretch(segment, part.start, finished=True, end=part.end)
        for start, end in found.damage:
            dead.keep_damage(segment, start, end)
        located.extend([Located(segment, frame) for frame in found.frames])
    return located


def columns_of(located: Sequence[Located], dead: DeadLetters, *, with_spans: bool) -> Columns:
    """Frames that have no row become dead letters."""
    try:
        return to_columns([item.frame for item in located], with_spans=with_spans)
    except ValueError:
        good = [item.frame for item in located if _is_good(item, dead)]
        return to_columns(good, with_spans=with_spans)


def _is_good(item: Located, dead: DeadLetters) -> bool:
    try:
        to_columns([item.frame])
    except ValueError as error:
        dead.keep_frame(item.segment, item.frame, str(error))
        return False
    return True


def halve(located: Sequence[Located], *, handed_over: bool) -> tuple[Plan, ...]:
    middle = len(located) // 2
    return tuple(Plan(_parts(half), handed_over) for half in (located[:middle], located[middle:]))


def _parts(located: Sequence[Located]) -> tuple[Part, ...]:
    parts: list[Part] = []
    for item in located:
        name = item.segment.name
        if parts and parts[-1].segment == name:
            parts[-1] = Part(name, parts[-1].start, item.frame.end)
        else:
            parts.append(Part(name, item.frame.start, item.frame.end))
    return tuple(parts)

"""The rollout of one world, from its first request to its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from tests.live.acceptance.clients import ClientRequest, Clients
from tests.live.acceptance.worlds import World
from tests.live.prompts import JSON, Project, Prompt, Rollout

FIRST_REQUESTS = 20
"""The number of the target's requests from which on a verdict is due."""

# The reasons for which a rollout waits while nothing speaks against its target.
_WAITS = frozenset({"not_evaluated", "minimum_duration", "minimum_requests", "inconclusive"})


@dataclass(frozen=True)
class Finding:
    """`promoted`, `completed`, `rolled back`, `held` or `waits`; `at` is the time of the first decision in Unix time,
    `stage` the current stage."""

    decided: str
    at: float
    reason: str
    stage: int
    has_ended: bool


class Course:
    def __init__(self, world: World, project: Project) -> None:
        self.world = world
        self.project = project
        self.clients = Clients(world, project.service.base_url, project.api_key)
        self.finding = Finding("waits", 0.0, "", 1, has_ended=False)
        self._before = 0

    def prepare(self) -> None:
        self.project.set(**self.world.settings)
        self.prompt: Prompt = self.project.prompt(self.world.name, *self.world.versions)

    def start(self, stages: Sequence[JSON]) -> None:
        self._before = len(self.clients.seen)
        self.rollout: Rollout = self.prompt.rollout(mode="auto", stages=list(stages), **self.world.rollout)

    @property
    def seen(self) -> list[ClientRequest]:
        return self.clients.seen[self._before :]

    @property
    def target(self) -> list[ClientRequest]:
        """A request without an answer names no arm, and counts as the target's: the baselines of all worlds answer."""
        silent = ("", "left", "broken")
        return [one for one in self.seen if one.variant == "target" or (not one.variant and one.outcome in silent)]

    @property
    def baseline(self) -> list[ClientRequest]:
        return [one for one in self.seen if one.variant == "baseline"]

    def look(self) -> None:
        before, found = self.finding, _finding(self.rollout.shown())
        if before.decided == "held" and found.decided in ("held", "rolled back"):
            found = replace(found, at=before.at)
        self.finding = found

    def requests_until_decided(self) -> int:
        return sum(one.sent <= self.finding.at for one in self.target) if self.finding.at else len(self.target)

    def minutes_until_decided(self) -> float | None:
        if len(self.target) < FIRST_REQUESTS or not self.finding.at:
            return None
        return (self.finding.at - self.target[FIRST_REQUESTS - 1].sent) / 60

    @property
    def names_the_fault(self) -> bool:
        return self.world.because in self.finding.reason.lower()

    def fault(self, within_minutes: float) -> str:
        decided, minutes = self.finding.decided, self.minutes_until_decided()
        if self.world.harmless:
            return "" if decided in ("promoted", "completed") else "harmless, and not promoted"
        if decided in ("promoted", "completed"):
            return f"{decided}, and worse"
        if decided == "waits":
            return "neither rolled back nor held"
        if not self.names_the_fault:
            return f"does not name {self.world.because!r}"
        return f"not within {within_minutes:g} min" if minutes and minutes > within_minutes else ""


def _finding(shown: JSON) -> Finding:
    moves = [row for row in shown["transitions"] if row["actor"] == "auto"]
    stage = shown["current_stage"] or 0
    if moves:
        decided = "rolled back"
        if moves[0]["action"] == "promote":  # Decisions after the first final one do not matter.
            decided = "completed" if shown["status"] == "completed" else "promoted"
        at, reason = _seconds(moves[0]["created_at"]), moves[-1]["reason"]
        return Finding(decided, at, reason, stage, shown["ended_at"] is not None)
    verdict: dict[str, Any] = shown["evaluation"] or {"reason": "not_evaluated", "explanation": ""}
    held = verdict["reason"] not in _WAITS
    at = _seconds(verdict["decided_at"]) if held else 0.0
    return Finding("held" if held else "waits", at, verdict["explanation"], stage, False)


def _seconds(written: str) -> float:
    return datetime.fromisoformat(written).timestamp()

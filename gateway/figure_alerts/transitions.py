"""What follows from a look at an alert: its new state, an entry of its history, and whether the receivers are told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from gateway.tables.figure_alert import AlertEvent, FigureAlert

_Kind, _State = AlertEvent.Kind, FigureAlert.State
# What receivers hear of, and the kind of event that tells them.
_BEGINS = {_State.FIRING: _Kind.FIRED, _State.BROKEN: _Kind.BROKEN}


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of an alert before a look: its last state, and what its receivers were told last and when."""

    state: str
    told_state: str = ""
    told_at: datetime | None = None
    silenced_until: datetime | None = None
    repeat_minutes: int | None = None

    @classmethod
    def of(cls, alert: FigureAlert) -> Told:
        return cls(alert.state, alert.told_state, alert.told_at, alert.silenced_until, alert.repeat_minutes)

    def is_silenced(self, now: datetime) -> bool:
        return self.silenced_until is not None and self.silenced_until > now

    def is_to_be_repeated(self, now: datetime) -> bool:
        return (
            self.repeat_minutes is not None
            and self.told_at is not None
            and now >= self.told_at + timedelta(minutes=self.repeat_minutes)
        )


@dataclass(frozen=True, slots=True)
class Transition:
    """An entry of the history, and whether it is sent."""

    kind: AlertEvent.Kind
    is_sent: bool


def transition(before: Told, state: str, now: datetime) -> Transition | None:
    """Returns what the new `state` brings, None for nothing.

    A silenced alert tells nobody anything; what its receivers do not know when the silence ends is sent then. Without
    data nothing is said: an alert that fired is resolved only by a figure.
    """
    if state == _State.NO_DATA:
        return None if before.state == state else Transition(_Kind.NO_DATA, is_sent=False)
    if state == _State.OK:
        return _ended(before, now)
    is_owed = before.told_state != state
    is_sent = not before.is_silenced(now) and (is_owed or before.is_to_be_repeated(now))
    kind = _BEGINS[_State(state)]
    if before.state != state:
        return Transition(kind, is_sent)
    if not is_sent:
        return None
    return Transition(kind if is_owed or kind is _Kind.BROKEN else _Kind.REPEATED, is_sent=True)


def _ended(before: Told, now: datetime) -> Transition | None:
    is_sent = before.told_state != "" and not before.is_silenced(now)
    if not is_sent and before.state not in _BEGINS:
        return None
    return Transition(_Kind.RESOLVED, is_sent)

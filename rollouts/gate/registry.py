"""The checks of gates by kind, and the work of gates that show something by themselves. This app knows none of them:
the app that knows how something is shown registers its check when it is ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID

from django.utils.module_loading import import_string

from prompts.models import PromptVersion
from rollouts.models import Rollout


@dataclass(frozen=True, slots=True)
class Question:
    project_id: UUID
    baseline: PromptVersion
    target: PromptVersion
    dataset_id: UUID | None
    rollout_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """`reason` is a sentence that says what was shown or what is missing. The experiment is the one that showed it, or
    that comes nearest; `shadow` are the figures of a shadow, as JSON."""

    is_passed: bool
    reason: str
    experiment_id: UUID | None = None
    dataset_id: UUID | None = None
    dataset_version: int | None = None
    shadow: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewShadow:
    evaluator_id: UUID
    rate: float
    budget_usd: Decimal
    version: int | None = None


class Check(Protocol):
    def __call__(self, questions: Sequence[Question], *, holds: bool = False) -> Sequence[Finding]:
        """Answers questions about one project. With `holds`, findings stay true until the transaction ends."""


class Work(Protocol):
    def begin(self, rollout: Rollout, shadow: NewShadow) -> None: ...

    def end(self, rollout: Rollout) -> None: ...


_checks: dict[str, str] = {}
_works: dict[str, str] = {}


def register(kind: str, check: str, work: str = "") -> None:
    """Takes the dotted names of a `Check` and of a class of `Work`: every process registers them, few need them."""
    _checks[kind] = check
    if work:
        _works[kind] = work


def check_of(kind: str) -> Check:
    if kind not in _checks:
        raise LookupError(f"No check is registered for the gate {kind}")
    check: Check = import_string(_checks[kind])
    return check


def work_of(kind: str) -> Work | None:
    work: Work | None = import_string(_works[kind])() if kind in _works else None
    return work

"""The checks of gates by kind. This app knows none of them: the app that knows how something is shown registers its
check when it is ready."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from prompts.models import PromptVersion


@dataclass(frozen=True, slots=True)
class Question:
    """Whether it is shown that this target may follow this baseline. Without a `dataset_id` any data set will do."""

    project_id: UUID
    baseline: PromptVersion
    target: PromptVersion
    dataset_id: UUID | None


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to a question: `reason` is a sentence that says what was shown, or what is missing. The experiment is
    the one that showed it, or that comes nearest to it."""

    is_passed: bool
    reason: str
    experiment_id: UUID | None = None
    dataset_id: UUID | None = None
    dataset_version: int | None = None


class Check(Protocol):
    def __call__(self, questions: Sequence[Question], *, holds: bool = False) -> Sequence[Finding]:
        """Answers each of the questions, which are about one project. What is found with `holds` stays true until the
        transaction ends."""


_checks: dict[str, Check] = {}


def register(kind: str, check: Check) -> None:
    _checks[kind] = check


def check_of(kind: str) -> Check:
    """Raises LookupError for a kind that has no check, so that its gate stays closed."""
    if kind not in _checks:
        raise LookupError(f"No check is registered for the gate {kind}")
    return _checks[kind]

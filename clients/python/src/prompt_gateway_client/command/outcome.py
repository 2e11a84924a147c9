"""What a run found: the JSON on standard output, and the exit code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

PASSED, WORSE, UNDECIDED, NOT_RUN = range(4)
FailOn = Literal["worse", "not-passing"]
_EXIT_CODES = {"passed": PASSED, "worse": WORSE, "undecided": UNDECIDED}


class NotRunError(Exception):
    """There is no verdict: `code` says why, as the codes of the API do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def failure(error: Exception) -> dict[str, str]:
    """Returns the error of an outcome for what the command did not expect, such as an answer that lacks a field."""
    return {"code": "command_failed", "message": f"The command failed: {type(error).__name__}: {error}"}


@dataclass
class Outcome:
    """A run. `version` and `against` are the numbers of the versions; without an `error` or an `experiment` both are
    the same version, so that there was nothing to try."""

    config: str
    fail_on: FailOn = "not-passing"
    version: int | None = None
    against: int | None = None
    url: str | None = None
    experiment: dict[str, Any] | None = None
    error: dict[str, str] | None = None

    @property
    def is_unchanged(self) -> bool:
        return self.version is not None and self.experiment is None and self.error is None

    @property
    def is_alone(self) -> bool:
        """Whether the experiment completed without a baseline, so that there is no verdict."""
        return self.error is None and self.field("state") == "completed" and self.field("baseline") is None

    @property
    def verdict(self) -> str | None:
        found: str | None = None if self.experiment is None or self.error else self.experiment.get("verdict")
        return found

    @property
    def exit_code(self) -> int:
        if self.is_unchanged or self.is_alone:
            return PASSED
        code = _EXIT_CODES.get(self.verdict or "", NOT_RUN)
        return PASSED if code == UNDECIDED and self.fail_on == "worse" else code

    @property
    def title(self) -> str:
        numbers = f" {self.version} against {self.against}" if self.version is not None else ""
        return f"{self.config}{numbers}"

    @property
    def target(self) -> dict[str, Any] | None:
        """The part of the report that is about the version that was tried."""
        report = self.field("report")
        targets = report["targets"] if report else []
        return targets[0] if targets else None

    def field(self, name: str) -> Any:
        return None if self.experiment is None else self.experiment.get(name)

    def as_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "config": self.config,
            "version": self.version,
            "against": self.against,
            "unchanged": self.is_unchanged,
            "experiment_id": self.field("id"),
            "url": self.url,
            "dataset": self.field("dataset"),
            "cost_usd": self.field("spent_usd"),
            "report": self.field("report"),
            "error": self.error,
        }

"""The playground's result for one model's answer. Times are in milliseconds, costs in US dollars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from analytics.request_log.record import RequestRecord
from core.wire.shown import shown_as
from gateway.judging.judge import JudgeResult
from gateway.pipeline.internal_client import InternalAnswer, Reported
from gateway.playground.shapes import PlaygroundFailure, PlaygroundUsage
from gateway.protocol.headers import PROMPT_VERSION, VARIANT, WARNING


@dataclass(frozen=True, slots=True)
class Result:
    model: str
    answer: InternalAnswer
    judgement: JudgeResult | None = None

    @property
    def succeeded(self) -> bool:
        return self.answer.error is None

    @property
    def message(self) -> dict[str, Any] | None:
        return message_of(self.answer)

    @property
    def latency_ms(self) -> float:
        return self.answer.seconds * 1000

    @property
    def cost_usd(self) -> float | None:
        return cost_of(self.answer)

    @property
    def total_tokens(self) -> int:
        record = self.answer.record
        return record.prompt_tokens + record.completion_tokens if record is not None else 0

    def shown(self) -> dict[str, Any]:
        answer, record, headers = self.answer, self.answer.record, self.answer.headers
        version = headers.get(PROMPT_VERSION.decode())
        return {
            "model": self.model,
            "request_id": answer.request_id,
            "provider": (record.provider if record is not None else "") or None,
            "model_used": (record.model if record is not None else "") or None,
            "fallback_used": record is not None and record.fallback_used,
            "response": self.message,
            "finish_reason": (record.finish_reason if record is not None else "") or None,
            "usage": _usage(record),
            "latency_ms": round(self.latency_ms, 1),
            "ttft_ms": (record.ttft_ms or None) if record is not None and record.is_stream else None,
            "cost_usd": self.cost_usd,
            "prompt_version": int(version) if version else None,
            "variant": headers.get(VARIANT.decode()),
            "warning": headers.get(WARNING.decode()),
            "scores": _scores(self.judgement),
            "evaluation": evaluation_of(self.judgement),
            "error": error_of(answer.error),
        }


def message_of(answer: InternalAnswer) -> dict[str, Any] | None:
    choices = (answer.completion or {}).get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return message if isinstance(message, dict) else None


def cost_of(answer: InternalAnswer) -> float | None:
    record = answer.record
    return float(record.cost_usd) if record is not None and record.cost_known else None


def error_of(error: Reported | None) -> PlaygroundFailure | None:
    return None if error is None else shown_as(PlaygroundFailure, error)


def evaluation_of(judgement: JudgeResult | None) -> dict[str, Any] | None:
    if judgement is None:
        return None
    answer = judgement.answer
    return {
        "judge_model": judgement.model or None,
        "request_id": answer.request_id if answer is not None else None,
        "latency_ms": round(answer.seconds * 1000, 1) if answer is not None else None,
        "cost_usd": cost_of(answer) if answer is not None else None,
        "reasons": {name: grade.reason for name, grade in judgement.grades.items()} or None,
        "error": error_of(judgement.error),
    }


def _usage(record: RequestRecord | None) -> PlaygroundUsage | None:
    if record is None or not record.prompt_tokens + record.completion_tokens:
        return None
    total = record.prompt_tokens + record.completion_tokens
    return shown_as(PlaygroundUsage, record, total_tokens=total, estimated=record.tokens_estimated)


def _scores(judgement: JudgeResult | None) -> dict[str, float] | None:
    if judgement is None or not judgement.grades:
        return None
    return {name: grade.score for name, grade in judgement.grades.items()}

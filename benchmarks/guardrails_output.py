"""Measures the cost of the output guardrails: CPU time by kind of text, whole and streamed in events of four tokens.

The command is `python -m benchmarks.guardrails_output`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import msgspec

from gateway.guardrails.output.answer import OutputChecks
from gateway.guardrails.output.stream import StreamGuard
from gateway.project_settings.guardrails import GuardrailSettings, TrustMode
from integrations.providers.base import StreamEvent

_SIZE, _EVENT, _RUNS = 16 * 1024, 20, 5
_TEXTS = {
    "prose": "The quick brown fox, which nobody had seen before, jumped over the lazy dog and went its way. ",
    "numbers": "On 12 May 2024 at 12:30 we sold 17 units for 4,200.50 EUR to 3 customers, see order 81723. ",
    "addresses": "See https://docs.example.org/en/latest/guide/getting-started-{0}.html#first-steps and "
    "![chart](https://cdn.example.com/9f86d081884c7d659a2feaa0/chart{0}.png?width=1200&height=800&auto=compress). ",
    "personal data": "Please write to ada@example.org or call +49 30 901820 22 about card 4242 4242 4242 4242. ",
}
_CHECKS: dict[str, dict[str, object]] = {
    "masking": {"mask_output_pii": True},
    "all": {
        "mask_output_pii": True,
        "block_exfiltration_urls": True,
        "blocked_output_topics": ("insider trading", "moon landing"),
        "blocked_tools": ("delete_all",),
    },
}


def main() -> None:
    sys.stdout.write(
        "| checks | text | whole, µs per KB | stream, µs per KB | stream, µs per event |\n|---|---|---|---|---|\n"
    )
    for checks, fields in _CHECKS.items():
        settings = msgspec.convert({"trust_mode": TrustMode.ENFORCE, **fields}, GuardrailSettings)
        for name, sentence in _TEXTS.items():
            text = "".join(map(sentence.format, range(_SIZE // len(sentence) + 1)))[:_SIZE]
            events = [_event(text[start : start + _EVENT]) for start in range(0, _SIZE, _EVENT)]
            whole = _fastest_seconds(partial(_whole, settings, text))
            streamed = _fastest_seconds(partial(_stream, settings, events))
            per_kb = 1024 / _SIZE * 1e6
            sys.stdout.write(
                f"| {checks} | {name} | {whole * per_kb:.0f} | {streamed * per_kb:.0f} "
                f"| {streamed / len(events) * 1e6:.0f} |\n"
            )


def _whole(settings: GuardrailSettings, text: str) -> None:
    OutputChecks(settings, list).guard_message({"role": "assistant", "content": text})


def _stream(settings: GuardrailSettings, events: list[StreamEvent]) -> None:
    guard = StreamGuard(OutputChecks(settings, list))
    for event in events:
        guard.feed([event])
    guard.close([])


def _event(text: str) -> StreamEvent:
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "model-1",
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}],
    }
    return StreamEvent(msgspec.json.encode(chunk), has_output=True, text=text)


def _fastest_seconds(work: Callable[[], None]) -> float:
    """Returns the CPU seconds of the quickest run, since the others were disturbed."""
    took = []
    for _ in range(_RUNS):
        started = time.process_time()
        work()
        took.append(time.process_time() - started)
    return min(took)


if __name__ == "__main__":
    main()

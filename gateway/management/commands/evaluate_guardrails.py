from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError

from gateway.guardrails.detectors.injection import injection_score
from gateway.guardrails.detectors.pii import find_pii
from gateway.guardrails.evaluation import Evaluation, KindTally, Line, Part, confidence_interval, evaluate

_decode = msgspec.json.Decoder(Line).decode


class Command(BaseCommand):
    help = "Judge labelled texts (JSON lines with text, label and kind) with the guardrails' detectors and count."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl")
        parser.add_argument(
            "--part",
            type=Part,
            choices=list(Part),
            help="only the texts that rules are written with, or only those they are judged by",
        )
        parser.add_argument(
            "--mistaken",
            action="store_true",
            help="also list the ids of lines that were misjudged, of those that rules are written with",
        )
        parser.add_argument("--time", action="store_true", help="also measure the CPU time of the detectors")

    def handle(self, *args: Any, **options: Any) -> None:
        part = options["part"]
        lines = [line for file in options["files"] for line in _read(file) if part in (None, line.part)]
        evaluation = evaluate(lines)
        for row in (*_injection_rows(evaluation), *_entity_rows(evaluation)):
            self.stdout.write(row)
        if options["mistaken"]:
            self.stdout.write("\nmisjudged: " + (", ".join(evaluation.mistaken) or "none"))
        if options["time"]:
            for row in _time_rows(lines):
                self.stdout.write(row)


def _read(file: Path) -> list[Line]:
    try:
        rows = file.read_bytes().splitlines()
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from error
    lines = []
    for number, row in enumerate(rows, start=1):
        if not row.strip():
            continue
        try:
            lines.append(_decode(row))
        except msgspec.DecodeError as error:
            raise CommandError(f"{file}, line {number}: {error}") from error
    return lines


def _injection_rows(evaluation: Evaluation) -> Iterable[str]:
    if not evaluation.injections:
        return
    yield "| Prompt injection | texts | detected | recall | false positives | 95 % limits |"
    yield "|---|---|---|---|---|---|"
    kinds = [(kind, tally) for (kind, _), tally in sorted(evaluation.injections.items(), key=_detected_first)]
    totals = [("all label 1", evaluation.injection_recall), ("all label 0", evaluation.injection_false_positives)]
    for kind, tally in (*kinds, *totals):
        recall, wrong = (f"{tally.rate:.1%}", "") if tally.label else ("", f"{tally.rate:.1%}")
        limits = _limits(tally.detected, tally.texts)
        yield f"| {kind} | {tally.texts} | {tally.detected} | {recall} | {wrong} | {limits} |"


def _detected_first(item: tuple[tuple[str, int], KindTally]) -> tuple[int, str]:
    (kind, label), _ = item
    return -label, kind


def _entity_rows(evaluation: Evaluation) -> Iterable[str]:
    if not evaluation.entities:
        return
    yield "\n| Personal data | entities | found | found wrongly | precision | recall | 95 % limits of recall |"
    yield "|---|---|---|---|---|---|---|"
    for kind, tally in sorted(evaluation.entities.items()):
        entities = tally.found + tally.missed
        counts, limits = f"{entities} | {tally.found} | {tally.wrong}", _limits(tally.found, entities)
        yield f"| {kind.value} | {counts} | {tally.precision:.1%} | {tally.recall:.1%} | {limits} |"


def _limits(successes: int, trials: int) -> str:
    low, high = confidence_interval(successes, trials)
    return f"{low:.1%} to {high:.1%}"


def _time_rows(lines: list[Line]) -> Iterable[str]:
    yield "\n| CPU time | texts | KB | µs per text | µs per KB |"
    yield "|---|---|---|---|---|"
    detectors: tuple[tuple[str, Callable[[Line], object]], ...] = (
        ("personal data", lambda line: find_pii(line.text)),
        ("prompt injection", lambda line: injection_score(line.text, untrusted=line.is_untrusted)),
    )
    size = sum(len(line.text.encode("utf-8", "replace")) for line in lines) / 1024
    for name, detect in detectors:
        # The evaluation has shown every text to the detector before, as the traffic of a worker's first minutes does.
        started = time.process_time()
        for line in lines:
            detect(line)
        used = (time.process_time() - started) * 1e6
        yield f"| {name} | {len(lines)} | {size:.0f} | {used / max(1, len(lines)):.0f} | {used / max(1, size):.0f} |"

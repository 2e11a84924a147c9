from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from xml.sax.saxutils import escape

_BEGIN, _END = "<!-- analytics benchmark: begin -->", "<!-- analytics benchmark: end -->"

_WIDTH, _LEFT, _RIGHT, _TOP, _ROW = 960, 290, 90, 84, 22
_MIN_MS, _BOUND_MS = 1.0, 100.0
_FAST, _SLOW, _TAIL = "#1f6f8b", "#c1440e", "#bcd5de"


@dataclass(frozen=True, slots=True)
class QueryTimes:
    name: str
    runs: float
    milliseconds: float
    engine_cpu: float


@dataclass(frozen=True, slots=True)
class QuestionTimes:
    """Times in milliseconds; CPU is the average of a call. `failures` are counts by status."""

    group: str
    name: str
    calls: int
    p50: float
    p95: float
    slowest: float
    engine_cpu: float | None
    own_cpu: float
    queries: list[QueryTimes]
    failures: dict[str, int]


@dataclass(frozen=True, slots=True)
class Report:
    """`tables` are (name, rows, bytes on disk). None: a foreign engine does not report the figure."""

    requests: int
    days: int
    content_days: int
    generation_seconds: float
    generation_cpu_seconds: float | None
    peak_megabytes: float | None
    tables: list[tuple[str, int, int]]
    questions: list[QuestionTimes]
    machine: str


def markdown(report: Report) -> str:
    return "\n".join([*_questions(report), "", *_tables(report), "", *_remarks(report)])


def explained(report: Report) -> str:
    lines = ["| Question | query | runs | ms | engine CPU ms |", "|---|---|---|---|---|"]
    for question in report.questions:
        for query in question.queries:
            figures = f"{query.runs:.2f} | {query.milliseconds:.0f} | {query.engine_cpu:.0f}"
            lines.append(f"| {question.group}: {question.name} | {query.name} | {figures} |")
    return "\n".join(lines)


def write(path: Path, report: Report) -> None:
    text = path.read_text() if path.exists() else "# Performance\n"
    block = f"{_BEGIN}\n{markdown(report)}\n{_END}"
    pattern = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
    text = pattern.sub(lambda _: block, text) if pattern.search(text) else f"{text.rstrip()}\n\n{block}\n"
    path.write_text(text)


def _questions(report: Report) -> Iterator[str]:
    yield "| Question | p50 ms | p95 ms | slowest ms | engine CPU ms | Python CPU ms | failed |"
    yield "|---|---|---|---|---|---|---|"
    for question in report.questions:
        engine = "-" if question.engine_cpu is None else f"{question.engine_cpu:.0f}"
        failed = ", ".join(f"{count} of {status}" for status, count in question.failures.items()) or "0"
        yield (
            f"| {question.group}: {question.name}"
            f" | {question.p50:.0f} | {question.p95:.0f} | {question.slowest:.0f} | {engine} |"
            f" {question.own_cpu:.0f} | {failed} |"
        )


def _tables(report: Report) -> Iterator[str]:
    yield "| Table | rows | MB on disk |"
    yield "|---|---|---|"
    for name, rows, size in report.tables:
        yield f"| {name} | {rows:,} | {size / 1e6:,.1f} |"
    yield f"| together | | {sum(size for _, _, size in report.tables) / 1e6:,.1f} |"


def _remarks(report: Report) -> Iterator[str]:
    rate = report.requests / report.generation_seconds
    cpu = (
        "" if report.generation_cpu_seconds is None else f", {report.generation_cpu_seconds:,.0f} s of the engine's CPU"
    )
    yield (
        f"{report.requests:,} requests of one project over {report.days} days, texts for the newest"
        f" {report.content_days}; generated in {report.generation_seconds:,.0f} s ({rate:,.0f} a second{cpu})."
    )
    if report.peak_megabytes is not None:
        yield f"The engine's memory was at most {report.peak_megabytes:,.0f} MB."
    yield report.machine


def picture(report: Report) -> str:
    rows = len(report.questions) + len(list(groupby(report.questions, lambda question: question.group)))
    height = _TOP + rows * _ROW + 50
    end_ms = max(_BOUND_MS * 2, *(question.p95 for question in report.questions)) * 1.1
    parts = [*_head(report), *_axis(end_ms, _TOP + rows * _ROW)]
    y = float(_TOP)
    for group, members in groupby(report.questions, lambda question: question.group):
        parts.append(f'<text x="20" y="{y + 15:.0f}" font-weight="600">{escape(group)}</text>')
        y += _ROW
        for question in members:
            parts += _bar(question, y, end_ms)
            y += _ROW
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
        f' font-family="system-ui, sans-serif" font-size="12" fill="#222">\n'
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _head(report: Report) -> Iterator[str]:
    title = f"Questions to the analytics API over {report.requests:,} requests"
    yield f'<text x="20" y="26" font-size="15" font-weight="600">{escape(title)}</text>'
    legend = "whole endpoint in ms: dark up to the median, light up to the 95th percentile of its calls"
    yield f'<text x="20" y="46">{escape(legend)}</text>'


def _axis(end_ms: float, bottom: float) -> Iterator[str]:
    for power in range(math.floor(math.log10(end_ms)) + 1):
        value = 10.0**power
        x = _x(value, end_ms)
        bound = value == _BOUND_MS
        colour, dashes = ("#888", "4 4") if bound else ("#e4e4e4", "none")
        yield f'<path d="M{x:.1f} {_TOP - 8}V{bottom:.0f}" fill="none" stroke="{colour}" stroke-dasharray="{dashes}"/>'
        yield f'<text x="{x:.1f}" y="{_TOP - 14}" text-anchor="middle">{value:,.0f} ms</text>'


def _bar(question: QuestionTimes, y: float, end_ms: float) -> Iterator[str]:
    colour = _SLOW if question.p50 > _BOUND_MS else _FAST
    yield f'<text x="{_LEFT - 10}" y="{y + 15:.0f}" text-anchor="end">{escape(question.name)}</text>'
    for value, fill in ((question.p95, _TAIL), (question.p50, colour)):
        width = _x(value, end_ms) - _LEFT
        yield f'<rect x="{_LEFT}" y="{y + 4:.0f}" width="{width:.1f}" height="{_ROW - 8}" fill="{fill}"/>'
    figures = f"{question.p50:.0f} / {question.p95:.0f}"
    yield f'<text x="{_x(question.p95, end_ms) + 6:.1f}" y="{y + 15:.0f}" fill="#555">{figures}</text>'


def _x(milliseconds: float, end_ms: float) -> float:
    share = math.log(max(milliseconds, _MIN_MS) / _MIN_MS) / math.log(end_ms / _MIN_MS)
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

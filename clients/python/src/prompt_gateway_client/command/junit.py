"""The JUnit file: a test case for each evaluator, and for each item that newly failed one that has to pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

from prompt_gateway_client.command.figures import difference, fails, in_words
from prompt_gateway_client.command.outcome import Outcome

# XML 1.0 can hold neither these characters nor their escapes.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class _Case:
    name: str
    # `failure`, `error` or `skipped`; empty for a case that passed.
    kind: str = ""
    type: str = ""
    message: str = ""
    text: str = ""


def junit(outcome: Outcome) -> str:
    """Returns the file. Its form is that of Ant, which every reader of such files knows."""
    cases = list(_cases(outcome))
    counts = {kind: str(sum(case.kind == kind for case in cases)) for kind in ("failure", "error", "skipped")}
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        {
            "id": "0",
            "name": _clean(f"experiment {outcome.title}"),
            "package": "experiments",
            "timestamp": _second(outcome.field("started_at")),
            "hostname": urlsplit(outcome.url or "").hostname or "localhost",
            "tests": str(len(cases)),
            "failures": counts["failure"],
            "errors": counts["error"],
            "skipped": counts["skipped"],
            "time": f"{_seconds(outcome):.3f}",
        },
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name in ("verdict", "experiment_id", "url", "cost_usd"):
        value = outcome.as_json()[name]
        ElementTree.SubElement(properties, "property", name=name, value="" if value is None else _clean(str(value)))
    for case in cases:
        _add(suite, f"experiments.{_clean(outcome.config)}", case)
    ElementTree.SubElement(suite, "system-out").text = _clean((outcome.target or {}).get("explanation") or "")
    ElementTree.SubElement(suite, "system-err").text = _clean((outcome.error or {}).get("message") or "")
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _cases(outcome: Outcome) -> Iterator[_Case]:
    if outcome.error:
        yield _Case("run", "error", outcome.error["code"], outcome.error["message"], outcome.error["message"])
        return
    for evaluator in (outcome.target or {}).get("evaluators", ()):
        yield _of_evaluator(outcome, evaluator)
        yield from _newly_failed(outcome, evaluator)


def _of_evaluator(outcome: Outcome, evaluator: dict[str, Any]) -> _Case:
    title = str(evaluator["title"])
    if not fails(evaluator):
        return _Case(title)
    # What does not fail the command is no failure in its file either.
    kind = "skipped" if outcome.exit_code == 0 else "failure"
    words = in_words(evaluator, outcome.version, outcome.against)
    return _Case(title, kind, outcome.verdict or "", f"{outcome.verdict}: difference {difference(evaluator)}", words)


def _newly_failed(outcome: Outcome, evaluator: dict[str, Any]) -> Iterator[_Case]:
    if not evaluator["must_pass"]:
        return
    kind = "skipped" if outcome.exit_code == 0 else "failure"
    message = f"version {outcome.against} passes, version {outcome.version} does not"
    for position in evaluator["newly_failed"]:
        words = f"item {position}: {message}\n{in_words(evaluator, outcome.version, outcome.against)}"
        yield _Case(f"{evaluator['title']}: item {position}", kind, "newly_failed", message, words)


def _add(suite: ElementTree.Element, class_name: str, case: _Case) -> None:
    element = ElementTree.SubElement(suite, "testcase", name=_clean(case.name), classname=class_name, time="0")
    if case.kind == "skipped":
        ElementTree.SubElement(element, "skipped", message=_clean(case.message))
    elif case.kind:
        found = ElementTree.SubElement(element, case.kind, type=case.type, message=_clean(case.message))
        found.text = _clean(case.text)


def _seconds(outcome: Outcome) -> float:
    begun, ended = outcome.field("started_at"), outcome.field("ended_at")
    return (_time(ended) - _time(begun)).total_seconds() if begun and ended else 0.0


def _second(time: str | None) -> str:
    return (time or "1970-01-01T00:00:00")[:19]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _clean(text: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)

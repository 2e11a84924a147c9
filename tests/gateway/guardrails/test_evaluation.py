"""The evaluation counts correctly, and the detectors reach their figures on the labelled texts of SHARED_DIR."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.core.management import CommandError, call_command

from gateway.guardrails.detectors.pii import PiiKind
from gateway.guardrails.evaluation import Evaluation, Line, Part, confidence_interval, evaluate
from tests.recordings import shared_file
from tests.tables.cases import stored

MEASURED = (PiiKind.EMAIL, PiiKind.PHONE, PiiKind.CARD, PiiKind.IBAN, PiiKind.US_SSN, PiiKind.IP)


def line(text: str, label: int, kind: str, **extra: Any) -> dict[str, Any]:
    return {"id": text[:10], "text": text, "label": label, "kind": kind, "source": "own", "licence": "own", **extra}


LINES = stored(__file__, "LINES")


def counted(rows: list[dict[str, Any]]) -> Evaluation:
    return evaluate([msgspec.convert(row, Line) for row in rows])


def test_evaluate__labelled_texts__are_counted_by_kind_and_entity() -> None:
    evaluation = counted(LINES)

    assert (evaluation.injections["override", 1].detected, evaluation.injections["override", 1].texts) == (1, 2)
    assert evaluation.injections["small_talk", 0].rate == 0.5
    assert evaluation.injection_recall.rate == pytest.approx(2 / 3)
    email, phone, ip = (evaluation.entities[kind] for kind in (PiiKind.EMAIL, PiiKind.PHONE, PiiKind.IP))
    assert (email.found, email.missed, email.wrong) == (1, 0, 0)
    assert (phone.found, phone.missed, phone.precision, phone.recall) == (0, 1, 1.0, 0.0)
    assert (ip.found, ip.missed, ip.wrong) == (2, 0, 1)
    assert set(evaluation.mistaken) == {
        name
        for name, part in ((row["id"], msgspec.convert(row, Line).part) for row in LINES)
        if part is Part.WRITING and name in {"What a lov", "Forget all", "call 12 ma", "from 203.0"}
    }


def test_part__any_text__is_always_the_same_and_blanks_around_it_do_not_count() -> None:
    texts = [f"Text number {number}." for number in range(400)]
    parts = [Line(text=text, label=1, kind="any").part for text in texts]
    assert 150 < parts.count(Part.JUDGING) < 250
    assert [Line(text=f" {text}\n", label=0, kind="other").part for text in texts] == parts


def test_limits_of_confidence__known_counts__are_wilsons() -> None:
    assert confidence_interval(81, 263) == pytest.approx(
        (0.2553, 0.3662), abs=5e-5
    )  # The expected interval is from Newcombe 1998, method 3.
    assert confidence_interval(0, 20) == pytest.approx((0, 0.1611), abs=5e-5)
    assert confidence_interval(29, 29) == pytest.approx((0.8830, 1), abs=5e-5)
    assert confidence_interval(0, 0) == (0, 1)


def test_command__part__leaves_the_other_out_and_names_no_line_to_judge_by(tmp_path: Path) -> None:
    file = tmp_path / "labelled.jsonl"
    file.write_text("\n".join(json.dumps(line(f"Number {n} is odd.", 1, "missed")) for n in range(100)))
    texts = {}
    for part in Part:
        written = io.StringIO()
        call_command("evaluate_guardrails", str(file), "--part", part.value, "--mistaken", stdout=written)
        texts[part] = written.getvalue()

    counts = {part: int(text.split("| missed | ")[1].split(" ")[0]) for part, text in texts.items()}
    assert sum(counts.values()) == 100 and min(counts.values()) > 20
    assert "misjudged: none" in texts[Part.JUDGING]
    assert "misjudged: Number" in texts[Part.WRITING]


def test_command__file__prints_the_tables(tmp_path: Path) -> None:
    file = tmp_path / "labelled.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in LINES) + "\n\n")
    written = io.StringIO()

    call_command("evaluate_guardrails", str(file), "--time", "--mistaken", stdout=written)

    text = written.getvalue()
    assert "| override | 2 | 1 | 50.0% |  | 9.5% to 90.5% |" in text
    assert "| all label 0 | 2 | 1 |  | 50.0% | 9.5% to 90.5% |" in text
    assert "| email | 1 | 1 | 0 | 100.0% | 100.0% | 20.7% to 100.0% |" in text
    assert "µs per KB" in text and "misjudged: " in text


@pytest.mark.parametrize("content", [None, "not json\n", '{"text": 1}\n'])
def test_command__unreadable__says_where(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "labelled.jsonl"
    if content is not None:
        file.write_text(content)
    with pytest.raises(CommandError, match=r"labelled\.jsonl"):
        call_command("evaluate_guardrails", str(file), stdout=io.StringIO())


def shared_lines(name: str) -> list[dict[str, Any]]:
    """Returns the labelled texts, none without SHARED_DIR."""
    file = shared_file("guardrails", name)
    return [] if file is None else [json.loads(row) for row in file.read_text().splitlines()]


def test_prompt_injections__labelled_texts_of_others__found_without_accusing_the_harmless() -> None:
    rows = shared_lines("prompt_injection.jsonl")
    evaluation = counted(rows)
    assert not rows or evaluation.injection_recall.rate >= 0.85
    assert evaluation.injection_false_positives.rate <= 0.02


def test_prompt_injections__texts_to_judge_by__found_as_well_as_before() -> None:
    rows = shared_lines("prompt_injection.jsonl")
    judging = [line for line in (msgspec.convert(row, Line) for row in rows) if line.part is Part.JUDGING]
    evaluation = evaluate(judging)
    assert not rows or evaluation.injection_recall.rate >= 0.88
    assert evaluation.injection_false_positives.detected == 0


def test_personal_data__labelled_texts_of_others__found_exactly() -> None:
    rows = shared_lines("pii.jsonl")
    evaluation = counted(rows)
    for kind in MEASURED if rows else ():
        assert evaluation.entities[kind].precision >= 0.95, kind
        assert evaluation.entities[kind].recall >= 0.95, kind


def test_everyday_texts__are_hardly_ever_called_injections() -> None:
    rows = shared_lines("pii.jsonl") + [
        {"text": message["content"], "label": 0, "kind": "everyday"}
        for row in shared_lines("../traffic/prompts.jsonl")
        for message in row["messages"]
        if message["role"] == "user" and isinstance(message["content"], str)
    ]
    texts = [Line(text=row["text"], label=0, kind="everyday") for row in rows]
    assert evaluate(texts).injection_false_positives.rate <= 0.01

"""A provider's cost export is compared with the log.

The files are our own, in the forms that the vendors' SDKs type and their consoles export.
"""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from openai.types.admin.organization import UsageCostsResponse

from analytics.bills.comparison import Difference, compare, family
from analytics.bills.formats import BillError, Charge, read_bill
from analytics.queries.day_costs import DayCost
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_project
from tests.tables.cases import tabled

FIRST, SECOND = date(2026, 11, 1), date(2026, 11, 2)


def seconds(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def openai_page(*results: tuple[date, str | None, float]) -> dict[str, Any]:
    return {
        "object": "page",
        "data": [
            {
                "object": "bucket",
                "start_time": seconds(day),
                "end_time": seconds(day) + 86_400,
                "results": [
                    {
                        "object": "organization.costs.result",
                        "amount": {"value": value, "currency": "usd"},
                        "line_item": item,
                        "project_id": None,
                    }
                ],
            }
            for day, item, value in results
        ],
        "has_more": False,
        "next_page": None,
    }


OPENAI = openai_page(
    (FIRST, "gpt-4o-mini-2024-07-18, input", 0.0600001),
    (FIRST, "gpt-4o-mini-2024-07-18, output", 0.2),
    (SECOND, None, 1.5),
)
ANTHROPIC = {
    "data": [
        {
            "starting_at": "2026-11-01T00:00:00Z",
            "ending_at": "2026-11-02T00:00:00Z",
            "results": [
                {"amount": "123.45678", "currency": "USD", "model": "claude-opus-4-5-20251101", "token_type": "output"},
                {"amount": "1", "currency": "USD", "model": None, "cost_type": "web_search"},
            ],
        }
    ],
    "has_more": False,
    "next_page": None,
}
OPENAI_CSV = (
    "start_time,end_time,start_time_iso,end_time_iso,amount_value,amount_currency,line_item,project_id\n"
    '1793491200,1793577600,2026-11-01T00:00:00+00:00,2026-11-02T00:00:00+00:00,0.26,usd,"gpt-4o-mini, input",proj_1\n'
)
ANTHROPIC_CSV = (
    "usage_date_utc,model,workspace,api_key,usage_type,context_window,token_type,cost_usd\n"
    "2026-11-01,Claude Opus 4.5,Default,key,message,≤ 200k,output_no_cache,1.25\n"
)


def test_read_bill__openai_page__is_of_the_sdks_type_and_read_to_the_last_digit() -> None:
    UsageCostsResponse.model_validate(OPENAI)
    assert read_bill(json.dumps(OPENAI).encode()) == [
        Charge(FIRST, "gpt-4o-mini-2024-07-18", Decimal("0.0600001")),
        Charge(FIRST, "gpt-4o-mini-2024-07-18", Decimal("0.2")),
        Charge(SECOND, "", Decimal("1.5")),
    ]


@pytest.mark.parametrize(
    ("text", "charges"),
    [
        (
            json.dumps(ANTHROPIC),
            [Charge(FIRST, "claude-opus-4-5-20251101", Decimal("1.2345678")), Charge(FIRST, "", Decimal("0.01"))],
        ),
        (json.dumps([openai_page((FIRST, "o3, input", 1)), openai_page((SECOND, "o3, input", 2))]), None),
        ("\n".join(json.dumps(openai_page((day, "o3, input", 1))) for day in (FIRST, SECOND)), None),
        (OPENAI_CSV, [Charge(FIRST, "gpt-4o-mini", Decimal("0.26"))]),
        ("\ufeff" + ANTHROPIC_CSV, [Charge(FIRST, "Claude Opus 4.5", Decimal("1.25"))]),
    ],
)
def test_read_bill__forms__charges(text: str, charges: list[Charge] | None) -> None:
    found = read_bill(text.encode())
    assert found == charges if charges is not None else [charge.day for charge in found] == [FIRST, SECOND]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xff\xfe\x00", "not text"),
        (b"", "columns"),
        (b"a,b\n1,2\n", "columns"),
        (b"{", "not valid JSON"),
        (b'{"error": 1}', "no list named data"),
        (b'{"data": []}', "no charge"),
        (b'{"data": [{"results": []}]}', r"data\[0\]"),
        (b'{"data": [{"start_time": 1e99, "results": []}]}', r"data\[0\]"),
        (json.dumps(ANTHROPIC).replace("USD", "EUR").encode(), "EUR"),
        (ANTHROPIC_CSV.replace("1.25", "much").encode(), "line 2"),
        (ANTHROPIC_CSV.replace("2026-11-01", "yesterday").encode(), "line 2"),
        (OPENAI_CSV.replace("usd", "gbp").encode(), "line 2"),
    ],
)
def test_read_bill__something_else__says_what_is_wrong(content: bytes, problem: str) -> None:
    with pytest.raises(BillError, match=problem):
        read_bill(content)


@tabled
def test_family__names__without_version(model: str, name: str) -> None:
    assert family(model) == name


def test_compare__days_and_models__those_beyond_the_tolerance_only() -> None:
    charges = [
        Charge(FIRST, "gpt-4o-2024-08-06", Decimal("1.00")),
        Charge(FIRST, "gpt-4o-2024-08-06", Decimal("0.50")),
        Charge(SECOND, "o3", Decimal("0.009")),
    ]
    costs = [
        DayCost(FIRST, "gpt-4o", 3, 1, Decimal("1.25")),
        DayCost(FIRST, "gpt-4o-2024-08-06", 1, 0, Decimal("0.05")),
        DayCost(SECOND, "gpt-4o", 2, 0, Decimal("2")),
    ]
    found = compare(charges, costs, tolerance=Decimal("0.01"))
    assert found == [
        Difference(FIRST, "gpt-4o", Decimal("1.50"), Decimal("1.30"), 4, 1),
        Difference(SECOND, "gpt-4o", Decimal(0), Decimal(2), 2, 0),
    ]
    assert [one.excess for one in found] == [Decimal("0.20"), Decimal(-2)]


@pytest.fixture
def recorded(db: None, clickhouse: None, spool: Path) -> str:
    """A project with two requests of the first day, and one of another provider; its name is returned."""
    project = make_project()
    ts = seconds(FIRST) * 1_000_000 + 5
    common: dict[str, Any] = {"project_id": str(project.pk), "ts": ts, "cost_source": "catalog_a"}
    store(
        spool,
        make_entry(cost_usd="0.1600000000", model="gpt-4o-mini", **common),
        make_entry(cost_usd="0.1000001000", model="gpt-4o-mini-2024-07-18", **common),
        make_entry(cost_usd="9.0000000000", provider="azure_openai", **common),
    )
    return str(project.pk)


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("compare_costs", *arguments, stdout=out)
    return out.getvalue()


def test_compare_costs__all_recorded__says_so_and_succeeds(recorded: str, tmp_path: Path) -> None:
    file = tmp_path / "costs.json"
    file.write_text(json.dumps(openai_page((FIRST, "gpt-4o-mini-2024-07-18, input", 0.2600001))))
    assert run("openai", str(file), "--project", recorded, "--tolerance", "0") == (
        "1 days: charged 0.2600, recorded 0.2600, 0 differences\n"
    )


def test_compare_costs__charged_beyond_what_is_recorded__listed_and_exit_code_1(recorded: str, tmp_path: Path) -> None:
    file = tmp_path / "costs.json"
    file.write_text(json.dumps(OPENAI))
    out = io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("compare_costs", "openai", str(file), "--project", recorded, stdout=out)
    assert caught.value.returncode == 1
    assert out.getvalue().splitlines() == [
        "2026-11-02 (no model): charged 1.5000, recorded 0.0000 of 0 requests, +1.5000",
        "2 days: charged 1.7600, recorded 0.2600, 1 differences",
    ]


@tabled
def test_compare_costs__cannot_be_made__exit_code_2(
    recorded: str, tmp_path: Path, arguments: list[str], problem: str
) -> None:
    file = tmp_path / "costs.csv"
    file.write_text("a,b\n")
    with pytest.raises(CommandError, match=problem) as caught:
        run(*(argument.format(file=file) for argument in arguments))
    assert caught.value.returncode == 2

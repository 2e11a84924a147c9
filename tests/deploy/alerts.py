"""The unit tests that promtool runs over the shipped rules: figures at which each fires, and some at which not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_P = "prompt_gateway_"
_QUIET = {f'{_P}web_workers{{instance="a"}}': "2x60"}


@dataclass(frozen=True, slots=True)
class Rule:
    """`fires` and `rests` are series in promtool's notation, a value a minute; the rule is looked at in `minute`."""

    fires: Mapping[str, str]
    rests: Mapping[str, str]
    minute: int = 30


def _steady(name: str, labels: str, firing: float, resting: float) -> Rule:
    series = f"{_P}{name}{{{labels}}}"
    return Rule({series: f"{firing}x60"}, {series: f"{resting}x60"})


def _rising(name: str, labels: str = 'instance="a"') -> Rule:
    series = f"{_P}{name}{{{labels}}}"
    return Rule({series: "0+1x60"}, {series: "7x60"})


def _requests(project: str, failed: int, answered: int) -> dict[str, str]:
    series = f'{_P}requests_total{{project="{project}",provider="openai",model="m",outcome='
    return {f'{series}"error"}}': f"0+{failed}x60", f'{series}"success"}}': f"0+{answered}x60"}


_REFUSALS = {f'{_P}limit_refusals_total{{limit="budget"}}': "0x60"}
_FIRST_TOKEN = f"{_P}time_to_first_token_seconds_bucket"

RULES: Mapping[str, Rule] = {
    "GatewayRecordsLost": _rising("lost_records_total"),
    "GatewayShippingBehind": _steady("spool_lag_seconds", 'instance="a"', 400, 10),
    "GatewayStoreAway": _steady("store_up", 'instance="a",store="redis"', 0, 1),
    "GatewayNotReady": Rule(
        {f'{_P}web_workers_ready{{instance="a",check="configuration"}}': "1x60", **_QUIET},
        {f'{_P}web_workers_ready{{instance="a",check="configuration"}}': "2x60", **_QUIET},
    ),
    "GatewayErrors": Rule({**_requests("a", 10, 90), **_REFUSALS}, {**_requests("a", 1, 99), **_REFUSALS}),
    "GatewayDiskLow": _steady("disk_free_bytes", 'instance="a",folder="VAR_DIR"', 5e8, 5e10),
    "GatewayHostSilent": _steady("hosts", 'instance="a",state="silent"', 1, 0),
    "GatewayBeatStale": _steady("beat_seconds", 'instance="a"', 90, 2),
    "GatewayAbsent": Rule({f'{_P}build_info{{instance="b"}}': "_x60"}, _QUIET),
    # A project with a hundredth of the traffic: all together only one request in a hundred fails.
    "GatewayProjectFails": Rule(
        {**_requests("small", 5, 0), **_requests("large", 0, 500)},
        {**_requests("small", 1, 4), **_requests("large", 0, 500)},
    ),
    "GatewayCircuitOpen": _steady("circuits", 'instance="a",provider="openai",state="open"', 2, 0),
    "GatewayFirstTokenSlow": Rule(
        {f'{_FIRST_TOKEN}{{le="10"}}': "0+1x60", f'{_FIRST_TOKEN}{{le="20"}}': "0+10x60",
         f'{_FIRST_TOKEN}{{le="+Inf"}}': "0+10x60"},
        {f'{_FIRST_TOKEN}{{le="10"}}': "0+10x60", f'{_FIRST_TOKEN}{{le="20"}}': "0+10x60",
         f'{_FIRST_TOKEN}{{le="+Inf"}}': "0+10x60"},
    ),
    "GatewayBudgetNearlySpent": Rule(
        {f'{_P}budget_usd{{project="a"}}': "50x60", f'{_P}budget_left_usd{{project="a"}}': "3x60"},
        {f'{_P}budget_usd{{project="a"}}': "50x60", f'{_P}budget_left_usd{{project="a"}}': "30x60"},
    ),
    "GatewayLoopLag": _steady("event_loop_lag_seconds", 'instance="a"', 0.8, 0.01),
    "GatewayDeadLetters": _steady("dead_letters", 'instance="a"', 2, 0),
    "GatewayTraceExportDropping": _rising("trace_export_dropped_spans_total", 'instance="a",destination="x"'),
    "GatewayChildDown": _steady("child_up", 'instance="a",role="shipper"', 0, 1),
    "GatewayTaskFailing": _rising("background_task_failures", 'instance="a",task="x"'),
    "GatewayMigrationsMissing": _steady("alarms", 'instance="a",kind="migrations_missing"', 1, 0),
    "GatewaySecretsUnreadable": _steady("unreadable_secrets", 'instance="a"', 1, 0),
    "GatewayHostNameShared": _steady("alarms", 'instance="a",kind="host_name_shared"', 1, 0),
}  # fmt: skip


def unit_test(name: str, series: Mapping[str, str], minute: int, *, fires: bool) -> dict[str, Any]:
    """Counts the alerts, since their texts and labels are of the rule alone. A rule that has no figure says so."""
    found = f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)'
    return {
        "name": f"{name} {'fires' if fires else 'rests'}",
        "interval": "1m",
        "input_series": [{"series": one, "values": values} for one, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f"({found}) > bool 0",
                "eval_time": f"{minute}m",
                "exp_samples": [{"labels": "{}", "value": int(fires)}],
            }
        ],
    }

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from analytics.clickhouse import client
from analytics.traffic.catalogue import MODELS
from analytics.traffic.texts import WORDS, word

# Words of the generated traffic, and pieces of words, in scripts without Latin letters.
_NOT_LATIN = (
    "退款", "数据库", "服务器", "工程师", "パスワード", "京都", "환불", "возврат", "инфляция", "банк", "المستودع",
    "المبيعات", "שלום", "भुगतान", "ακύρωση",
)  # fmt: skip
_FREQUENT = ("the", "and", "you", "with", "for", "that", "parcel", "days")
# Pieces of words and pairs of words, all of them frequent.
_FREQUENT_PIECES = ("tion", "ing", "ther", "ment", "able")
_FREQUENT_PAIRS = ("the parcel", "you days", "with the", '"for the"', '"of the"')
_DEEP = 100_000


@dataclass(frozen=True, slots=True)
class Call:
    path: str
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    project: UUID
    end: datetime
    days: int
    sessions: int
    marathon: str
    marathon_requests: int
    users: Sequence[str]
    session_ids: Sequence[str]
    logged_ids: Sequence[str]
    request_ids: Sequence[str]
    chance: random.Random = field(default_factory=lambda: random.Random(11))


@dataclass(frozen=True, slots=True)
class _One:
    text: str


def take_sample(project: UUID, end: datetime, days: int) -> Sample:
    params = {"project": project}

    def texts(sql: str) -> list[str]:
        return [row.text for row in client.query(sql, params, row=_One, name="benchmark.sample")]

    named = "FROM requests WHERE project_id = {project:UUID} AND session_id != ''"
    marathon = texts(f"SELECT session_id AS text {named} GROUP BY session_id ORDER BY count() DESC LIMIT 1")[0]
    [(requests, sessions)] = client.execute(
        f"SELECT countIf(session_id = {{id:String}}), uniq(session_id) {named}", {**params, "id": marathon}
    )
    drawn = "ORDER BY rand() LIMIT 300"
    logged = "FROM otel_logs WHERE ProjectId = {project:UUID} AND notEmpty(SessionIds)"
    return Sample(
        project=project,
        end=end,
        days=days,
        sessions=int(sessions),
        marathon=marathon,
        marathon_requests=int(requests),
        users=texts(f"SELECT user_id AS text {named} AND user_id != '' {drawn}"),
        session_ids=texts(f"SELECT session_id AS text {named} {drawn}"),
        logged_ids=texts(f"SELECT SessionIds[1] AS text {logged} {drawn}"),
        request_ids=texts(f"SELECT toString(request_id) AS text {named} {drawn}"),
    )


Ask = Callable[[Sample], Call]


@dataclass(frozen=True, slots=True)
class Question:
    group: str
    name: str
    ask: Ask


def _get(path: str, **parameters: Any) -> Call:
    return Call(f"/api/llm/{path}?{urlencode(parameters)}")


def _sessions(**parameters: Callable[[Sample], Any]) -> Ask:
    def ask(sample: Sample) -> Call:
        chosen = {name: choose(sample) for name, choose in parameters.items()}
        return _get("sessions", project_id=sample.project, **{"limit": 20, **chosen})

    return ask


def _session_range(sample: Sample) -> Call:
    length = timedelta(hours=sample.chance.randint(24, 24 * 14))
    start = sample.end - timedelta(days=sample.days) * sample.chance.random()
    return _get("sessions", project_id=sample.project, start_date=_iso(start), end_date=_iso(start + length))


def _marathon(path: str, **parameters: Callable[[Sample], Any]) -> Ask:
    def ask(sample: Sample) -> Call:
        chosen = {name: choose(sample) for name, choose in parameters.items()}
        return _get(f"sessions/{sample.marathon}{path}", project_id=sample.project, **chosen)

    return ask


def _metrics(name: str) -> Ask:
    def ask(sample: Sample) -> Call:
        end = sample.end - timedelta(seconds=sample.chance.randint(0, 2 * 86_400))
        start = end - timedelta(days=30)
        return _get(f"metrics/{name}", project_id=sample.project, start_date=_iso(start), end_date=_iso(end))

    return ask


def _month(name: str, **parameters: Any) -> Ask:
    def ask(sample: Sample) -> Call:
        end = sample.end - timedelta(seconds=sample.chance.randint(0, 2 * 86_400))
        start = end - timedelta(days=30)
        return _get(
            f"metrics/{name}", project_id=sample.project, start_date=_iso(start), end_date=_iso(end), **parameters
        )

    return ask


def _day(name: str) -> Ask:
    def ask(sample: Sample) -> Call:
        end = sample.end - timedelta(seconds=sample.chance.randint(0, 2 * 86_400))
        start = end - timedelta(days=1)
        return _get(f"metrics/{name}", project_id=sample.project, start_date=_iso(start), end_date=_iso(end))

    return ask


def _whole_days(name: str) -> Ask:
    return lambda sample: _get(
        f"metrics/{name}",
        project_id=sample.project,
        start_date=(sample.end - timedelta(days=29)).date().isoformat(),
        end_date=sample.end.date().isoformat(),
    )


def _requests(**parameters: Callable[[Sample], Any]) -> Ask:
    def ask(sample: Sample) -> Call:
        chosen = {name: choose(sample) for name, choose in parameters.items()}
        return _get("requests", project_id=sample.project, **{"limit": 20, **chosen})

    return ask


def _week_before(sample: Sample) -> str:
    return _iso(sample.end - timedelta(seconds=sample.chance.randint(7 * 86_400, 8 * 86_400)))


def _figures(sample: Sample, name: str, **parameters: Any) -> Call:
    end = _iso(sample.end)
    start = _week_before(sample)
    return _get(f"requests/{name}", project_id=sample.project, start_date=start, end_date=end, **parameters)


def _team(sample: Sample) -> str:
    return f"team:{sample.chance.choice(('search', 'shop', 'support', 'billing'))}"


def _facets_of_a_team(sample: Sample) -> Call:
    return _figures(sample, "facets", metadata=_team(sample), not_outcome="cancelled", without_own="true")


def _search(query: Callable[[Sample], str]) -> Ask:
    def ask(sample: Sample) -> Call:
        return Call("/api/llm/search", {"project_id": str(sample.project), "query": query(sample), "limit": 20})

    return ask


def _telemetry(sample: Sample) -> Call:
    session = sample.chance.choice(sample.logged_ids)
    return Call(f"/api/projects/{sample.project}/llm/sessions/{session}/telemetry")


def _iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _limit(sample: Sample) -> int:
    return sample.chance.randint(18, 22)


def _of_sessions(sample: Sample) -> int:
    return max(0, min(_DEEP, sample.sessions - 100) - sample.chance.randint(0, 50))


def _within(sample: Sample) -> int:
    return max(0, sample.marathon_requests - sample.chance.randint(20, 1000))


def _user(sample: Sample) -> str:
    return sample.chance.choice(sample.users)


def _model(sample: Sample) -> str:
    return sample.chance.choice(MODELS).name


def _rare_word(sample: Sample) -> str:
    return word(sample.chance.randint(WORDS // 2, WORDS - 1))


def _fragment(sample: Sample) -> str:
    return _rare_word(sample)[1:].lower()


def _phrase(sample: Sample) -> str:
    return f'"{word(sample.chance.randint(0, 20))} {word(sample.chance.randint(200, 2_000))}"'


QUESTIONS: tuple[Question, ...] = (
    Question("Sessions", "newest", _sessions(limit=_limit)),
    Question("Sessions", "page 2", _sessions(offset=lambda s: 20 + s.chance.randint(0, 9))),
    Question("Sessions", "offset 100,000", _sessions(offset=_of_sessions)),
    Question("Sessions", "of a user", _sessions(user_id=_user)),
    Question("Sessions", "name_pattern, hits", _sessions(name_pattern=lambda s: f"%-{s.chance.randrange(4096):03x}%")),
    Question("Sessions", "name_pattern, none", _sessions(name_pattern=lambda s: f"%nobody{s.chance.random()}%")),
    Question("Sessions", "between two times", _session_range),
    Question("One session", "of 20,000 requests", _marathon("", limit=_limit)),
    Question("One session", "any", lambda s: _get(f"sessions/{s.chance.choice(s.session_ids)}", project_id=s.project)),
    Question("One session", "20,000 requests, first page", _marathon("/requests", limit=_limit)),
    Question("One session", "20,000 requests, last page", _marathon("/requests", offset=_within)),
    Question("One session", "telemetry", _telemetry),
    Question("Metrics, 30 days", "overview", _metrics("overview")),
    Question("Metrics, 30 days", "users", _metrics("users")),
    Question("Metrics, 30 days", "models", _metrics("models")),
    Question("Metrics, 30 days", "prompts", _metrics("prompts")),
    Question("Metrics, 30 days", "cost daily", _metrics("cost/daily")),
    Question("Metrics, 30 days", "cost by model", _metrics("cost/by-model")),
    Question("Metrics, 30 whole days", "overview", _whole_days("overview")),
    Question("Metrics, 30 whole days", "users", _whole_days("users")),
    Question("Metrics, 30 whole days", "models", _whole_days("models")),
    *(
        Question("Cost, 30 days and the 30 before", f"by {one}", _month("cost", group_by=one))
        for one in ("model", "user", "api_key", "session", "prompt_version")
    ),
    Question("Cost, 30 days and the 30 before", "intervals by model", _month("cost/intervals", group_by="model")),
    Question("Cost, 30 days and the 30 before", "intervals by user", _month("cost/intervals", group_by="user")),
    Question("Cost, 30 days and the 30 before", "price gaps", _month("cost/gaps")),
    Question("Errors and providers", "errors by kind, 30 days", _month("errors/groups")),
    Question("Errors and providers", "history of providers, a day", _day("providers/history")),
    Question("Errors and providers", "history of providers, a week", _month("providers/history")),
    Question("Errors and providers", "failovers, a week", _month("providers/failovers")),
    Question("Requests", "newest", _requests(limit=_limit)),
    Question("Requests", "of a user", _requests(user_id=_user)),
    Question("Requests", "of a model", _requests(model=_model)),
    Question("Requests", "failed", _requests(outcome=lambda s: "error", limit=_limit)),
    Question("Requests", "slow", _requests(min_latency_ms=lambda s: s.chance.randint(15_000, 40_000))),
    Question("Requests", "slower than seconds", _requests(min_latency_ms=lambda s: s.chance.randint(1_000, 8_000))),
    Question(
        "Requests",
        "slow and failed",
        _requests(min_latency_ms=lambda s: s.chance.randint(5_000, 40_000), outcome=lambda s: "error"),
    ),
    Question("Requests", "slowest of all", _requests(sort=lambda s: "-latency_ms", limit=_limit)),
    Question("Requests", "dearest of a week", _requests(sort=lambda s: "-cost_usd", start_date=_week_before)),
    Question("Requests", "fastest of a week", _requests(sort=lambda s: "latency_ms", start_date=_week_before)),
    Question("Requests", "failed, slowest first", _requests(sort=lambda s: "-latency_ms", outcome=lambda s: "error")),
    Question("Requests", "facets of a week", lambda s: _figures(s, "facets")),
    Question("Requests", "facets of a team's requests of a week", _facets_of_a_team),
    Question("Requests", "of a team of a week", _requests(metadata=_team, start_date=_week_before)),
    Question("Requests", "histogram of a week", lambda s: _figures(s, "histogram", outcome="error")),
    Question("Requests", "one", lambda s: _get(f"requests/{s.chance.choice(s.request_ids)}", project_id=s.project)),
    Question("Search", "rare word", _search(_rare_word)),
    Question("Search", "phrase", _search(_phrase)),
    Question("Search", "inside a word", _search(_fragment)),
    Question("Search", "not Latin", _search(lambda s: s.chance.choice(_NOT_LATIN))),
    Question("Search", "frequent word", _search(lambda s: s.chance.choice(_FREQUENT))),
    Question("Search", "frequent piece", _search(lambda s: s.chance.choice(_FREQUENT_PIECES))),
    Question("Search", "frequent words", _search(lambda s: s.chance.choice(_FREQUENT_PAIRS))),
    Question("Search", "no hit", _search(lambda s: f"qqz{s.chance.randrange(10**9)}x")),
)

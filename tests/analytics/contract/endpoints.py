"""Lists every analytics endpoint, with a call that it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import async_to_sync
from rest_framework.test import APIClient

from analytics import urls
from core.models import Project

VIEW = "019aa000-0000-7000-8000-000000000043"
EVALUATOR = "019aa000-0000-7000-8000-000000000044"
SESSION, REQUEST = "chat-42", "019aa000-0000-7000-8000-000000000042"


@dataclass(frozen=True)
class Endpoint:
    """An endpoint of analytics. `path` has `{session}`, `{user}`, which is the session's, `{request}`, `{trace}`, which
    is the request's, `{project}`, `{view}` and `{evaluator}`; `store` tells whether it needs ClickHouse; `query` are
    its parameters, `required` those that it does not do without."""

    method: str
    path: str
    query: tuple[str, ...] = ()
    body: dict[str, Any] = field(default_factory=dict)
    store: bool = True
    required: dict[str, str] = field(default_factory=dict)

    @property
    def has_body(self) -> bool:
        return self.method in ("POST", "PATCH")

    def send(self, api: APIClient) -> Callable[..., Any]:
        """Returns the function of the client that sends this method."""
        send: Callable[..., Any] = getattr(api, self.method.lower())
        return send

    def url(self, project: Project, *, session: str = SESSION, request: str = REQUEST) -> str:
        ids = {"session": session, "user": session, "request": request, "trace": request.replace("-", "")}
        return self.path.format(project=project.pk, view=VIEW, evaluator=EVALUATOR, **ids)

    def call(self, api: APIClient, project: Project, query: dict[str, Any] | None = None, **ids: str) -> Any:
        url = self.url(project, **ids)
        if self.has_body:
            return self.send(api)(url, {"project_id": str(project.pk), **self.body})
        return api.get(url, {**self.required, **(query or {})}) if self.method == "GET" else api.delete(url)


_PAGE, _RANGE = ("limit", "offset"), ("start_date", "end_date")
_REQUESTS = (
    *_RANGE, "session_id", "user_id", "outcome", "status_code", "source", "operation", "provider", "model",
    "requested_model", "error_type", "error_code", "prompt_config_id", "prompt_version", "rollout_id", "variant",
    "client_request_id", "min_latency_ms", "max_latency_ms", "min_cost_usd", "max_cost_usd", "api_key_id",
    "min_ttft_ms", "max_ttft_ms", "deployment", "language",
)  # fmt: skip
_OF_SCORES = ("score_name", "score_type", "evaluator_type")
_VIEW = {"page": "requests", "name": "of one session", "query": f"session_id={SESSION}"}
_EVALUATOR = {"name": f"names {SESSION}", "kind": "contains", "definition": {"value": SESSION}}
_SCORE = {"request_id": REQUEST, "score_name": "relevance", "score_value": 80}

ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/llm/sessions",
        (
            *_PAGE,
            *_RANGE,
            "user_id",
            "operation",
            "name_pattern",
            "min_cost_usd",
            "max_cost_usd",
            "feedback",
            "cursor",
            "sort",
            "min_duration_seconds",
            "max_duration_seconds",
            "min_request_count",
            "max_request_count",
            "min_error_count",
            "max_error_count",
        ),
    ),
    Endpoint("GET", "/api/llm/users/{user}"),
    Endpoint("DELETE", "/api/llm/users/{user}"),
    Endpoint("GET", "/api/llm/sessions/{session}"),
    Endpoint("GET", "/api/llm/sessions/{session}/requests", _PAGE),
    Endpoint("GET", "/api/llm/sessions/{session}/transcript", ("limit", "cursor")),
    Endpoint("GET", "/api/llm/sessions/{session}/timeline", ("offset",)),
    Endpoint("GET", "/api/llm/traces/{trace}"),
    Endpoint("GET", "/api/llm/sessions/{session}/feedback", (*_PAGE, "request_id"), store=False),
    Endpoint("POST", "/api/llm/sessions/{session}/feedback", body={"score": 5}, store=False),
    Endpoint("POST", "/api/llm/sessions/{session}/feedback-token", body={"expires_in": 60}, store=False),
    Endpoint(
        "GET",
        "/api/llm/scores",
        (*_PAGE, *_RANGE, "score_name", "score_type", "evaluator_type", "request_id"),
        store=False,
    ),
    Endpoint("POST", "/api/llm/scores", body=_SCORE, store=False),
    Endpoint("POST", "/api/llm/scores/batch", body={"scores": [_SCORE]}, store=False),
    Endpoint("GET", "/api/llm/scores/request/{request}", _PAGE, store=False),
    Endpoint("GET", "/api/llm/metrics/scores", (*_PAGE, *_RANGE, *_OF_SCORES, "group_by")),
    Endpoint("GET", "/api/llm/metrics/feedback", (*_PAGE, *_RANGE, "group_by")),
    Endpoint("GET", "/api/llm/metrics/bad-ratings", (*_PAGE, *_RANGE, "prompt_config_id")),
    Endpoint("GET", "/api/llm/requests", (*_PAGE, *_REQUESTS, "sort", "cursor")),
    Endpoint("GET", "/api/llm/requests/facets", _REQUESTS),
    Endpoint("GET", "/api/llm/requests/histogram", (*_REQUESTS, "interval")),
    Endpoint("GET", "/api/llm/requests/export", (*_REQUESTS, "include_content")),
    Endpoint("GET", "/api/llm/requests/{request}"),
    Endpoint("GET", "/api/llm/requests/{request}/neighbours"),
    Endpoint("GET", "/api/llm/requests/{request}/conversation"),
    Endpoint("POST", "/api/llm/search", body={"query": "a secret"}),
    Endpoint("GET", "/api/llm/lookup", ("q",), required={"q": SESSION}),
    Endpoint("GET", "/api/llm/views", (*_PAGE, "page"), store=False),
    Endpoint("POST", "/api/llm/views", body=_VIEW, store=False),
    Endpoint("DELETE", "/api/llm/views/{view}", store=False),
    Endpoint("GET", "/api/llm/evaluators", (*_PAGE, "state", "kind"), store=False),
    Endpoint("POST", "/api/llm/evaluators", body=_EVALUATOR, store=False),
    Endpoint("GET", "/api/llm/evaluators/{evaluator}", store=False),
    Endpoint("PATCH", "/api/llm/evaluators/{evaluator}", body={"description": f"Of {SESSION}"}, store=False),
    Endpoint("POST", "/api/llm/evaluators/{evaluator}/versions", body={"definition": {"value": SESSION}}, store=False),
    Endpoint("GET", "/api/llm/evaluators/{evaluator}/calibration", ("version",), store=False),
    Endpoint("GET", "/api/llm/metrics/overview", (*_RANGE, "operation")),
    Endpoint("GET", "/api/llm/metrics/totals", (*_RANGE, "operation")),
    Endpoint("GET", "/api/llm/metrics/users", (*_PAGE, *_RANGE, "operation")),
    Endpoint("GET", "/api/llm/metrics/models", (*_PAGE, *_RANGE, "operation")),
    Endpoint("GET", "/api/llm/metrics/operations", (*_PAGE, *_RANGE)),
    Endpoint("GET", "/api/llm/metrics/prompt-cache", (*_PAGE, *_RANGE)),
    Endpoint("GET", "/api/llm/metrics/prompts", (*_PAGE, *_RANGE, "group_by", "prompt_config_id")),
    Endpoint("GET", "/api/llm/metrics/cost/daily", (*_PAGE, *_RANGE, "operation")),
    Endpoint("GET", "/api/llm/metrics/cost/by-model", (*_PAGE, *_RANGE, "operation")),
    Endpoint("GET", "/api/llm/metrics/usage", (*_PAGE, *_RANGE, "operation", "interval")),
    Endpoint("GET", "/api/llm/metrics/errors", (*_PAGE, *_RANGE, "operation")),
    Endpoint("GET", "/api/llm/metrics/guardrails", (*_PAGE, *_RANGE)),
    Endpoint("GET", "/api/llm/metrics/guardrails/usage", (*_PAGE, *_RANGE, "interval")),
    Endpoint("GET", "/api/llm/guardrails/requests", (*_RANGE, "guardrail", "action", "limit")),
    Endpoint("GET", "/api/llm/metrics/cost", (*_PAGE, *_RANGE, "operation", "group_by")),
    Endpoint("GET", "/api/llm/metrics/cost/intervals", (*_RANGE, "operation", "group_by", "interval", "top")),
    Endpoint("GET", "/api/llm/metrics/cost/export", (*_RANGE, "operation", "group_by")),
    Endpoint("GET", "/api/llm/metrics/cost/gaps", (*_PAGE, *_RANGE, "operation")),
    Endpoint("GET", "/api/llm/metrics/errors/groups", (*_PAGE, *_RANGE, "operation")),
    Endpoint("GET", "/api/llm/metrics/providers/history", (*_RANGE, "interval_minutes")),
    Endpoint("GET", "/api/llm/metrics/providers/failovers", (*_PAGE, *_RANGE)),
    Endpoint("GET", "/api/llm/metrics/provider-latency", store=False),
    Endpoint("GET", "/api/projects/{project}/llm/sessions/{session}/telemetry"),
    Endpoint("DELETE", "/api/llm/requests/{request}"),
    Endpoint("DELETE", "/api/llm/sessions/{session}"),
)


_OF_ROWS = tuple(
    f"/api/llm/{name}" for name in ("trace-destinations", "dashboards", "figures", "comments", "assignments")
)


def content_of(answer: Any) -> bytes:
    """Returns the body of an answer, also of the export, which is streamed."""
    if not answer.streaming:
        return bytes(answer.content)

    async def collect() -> bytes:
        return b"".join([piece async for piece in answer])

    return async_to_sync(collect)()


def served() -> Iterator[tuple[str, str]]:
    """Yields (method, path) of every view of the app, as `ENDPOINTS` writes them, but for those of rows that people
    make, which have tests of their own."""
    patterns = [("/api/llm/", pattern) for pattern in urls.urlpatterns]
    patterns += [("/api/", pattern) for pattern in urls.telemetry_urlpatterns]
    for prefix, pattern in patterns:
        path = prefix + str(pattern.pattern)
        if path.startswith(_OF_ROWS):
            continue
        for name in ("session", "user", "request", "trace", "project", "view", "evaluator"):
            for kind in ("slashed:", "uuid:", "path:", "str:", ""):
                path = path.replace(f"<{kind}{name}_id>", f"{{{name}}}")
        for method in getattr(pattern.callback, "actions", ()):
            if method != "head":
                yield method.upper(), path

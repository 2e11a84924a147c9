from __future__ import annotations

from typing import Any

from core.rights.table import OPERATIONS

BEARER, API_KEY, PROJECT_ID, STAFF = "bearer", "apiKey", "projectId", "staffSession"

REQUEST_ID = {"x-request-id": {"$ref": "#/components/headers/RequestId"}}
MANAGEMENT_SECURITY: list[dict[str, Any]] = [{BEARER: [], PROJECT_ID: []}, {STAFF: [], PROJECT_ID: []}]
KEY_SECURITY: list[dict[str, Any]] = [{BEARER: [], PROJECT_ID: []}, {BEARER: []}]

_SCHEMES = {
    BEARER: {"type": "http", "scheme": "bearer", "description": "An API key of the service: `svc_…`."},
    API_KEY: {
        "type": "apiKey",
        "in": "header",
        "name": "x-api-key",
        "description": "An API key in the header of Anthropic's SDKs; the gateway's paths take it there too.",
    },
    PROJECT_ID: {"type": "apiKey", "in": "header", "name": "X-Project-Id", "description": "The project's UUID."},
    STAFF: {
        "type": "apiKey",
        "in": "cookie",
        "name": "sessionid",
        "description": "A session of the admin. Calls that change something carry `X-CSRFToken` as well.",
    },
}
_HEADERS = {
    "RequestId": {"description": "Names this request in logs and in the request log.", "schema": {"type": "string"}}
}
_TAGS = {
    "gateway": "Models in the protocols of OpenAI, Anthropic and Cohere.",
    "health": "Whether a worker is alive, and whether it should get traffic.",
    "agent": "The in-app agent.",
    "invitations": "Roles for people who have no account yet.",
    "users": "End users of applications: what is held of them, and its erasure.",
    "sessions": "Requests that belong together, and what people say about them.",
    "requests": "The request log.",
    "search": "Text search of the request log.",
    "scores": "Judgements of requests.",
    "comments": "What members write about requests and sessions.",
    "assignments": "Who looks after which request or session.",
    "online-evaluations": "Evaluators that score a sample of the answers while they are served.",
    "reviews": "Queues of requests that people score by hand.",
    "datasets": "Inputs with the answers that are expected of them, in versions.",
    "metrics": "Figures about a project.",
    "figures": "The figures that charts show.",
    "dashboards": "Pages of charts that people put together.",
    "telemetry": "Spans and logs of sessions.",
    "otlp": "Where OpenTelemetry exporters send to.",
    "prompts": "Managed prompts and their versions.",
    "rollouts": "Moving traffic from one prompt version to another in stages.",
    "playground": "Trying models out.",
    "integrations": "Access to providers.",
    "pricing": "What models cost.",
    "guardrails": "What guardrails found in requests and answers, and what they would have refused.",
    "settings": "How the gateway treats a project's requests.",
    "models": "What models cost, what they can, and how they do in a project.",
    "model-groups": "Names of the project's own that stand for several models.",
    "end-user-limits": "Budgets and rates of single end users.",
    "teams": "Keys that share budgets and rates, and who belongs to them.",
    "usage": "What is used of the limits.",
    "cache": "Kept answers.",
    "keys": "API keys.",
    "audit": "Who changed what.",
    "lookup": "What an id names.",
    "problems": "What is wrong in a project now.",
    "alerts": "Messages when a figure passes a threshold, or changes against last week.",
    "alert-channels": "Where alerts are sent: webhooks, Slack, e-mail.",
    "evaluators": "How answers are scored: by rules, by similarity, by a model that judges.",
    "experiments": "Prompt versions and models over data sets and past requests, scored by evaluators.",
    "traces": "Traces by their ids: the spans of applications and the gateway's own.",
    "trace-destinations": "Collectors to which the spans of a project's requests are exported.",
    "views": "Lists of requests and sessions that a person saved.",
    "members": "People and their roles in a project.",
}


def operations_of(document: dict[str, Any]) -> list[str]:
    return [operation["operationId"] for path in document["paths"].values() for operation in path.values()]


def finish(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    components = result.setdefault("components", {})
    components["securitySchemes"] = _SCHEMES
    components["headers"] = _HEADERS
    forgotten = sorted(set(operations_of(result)) - set(OPERATIONS))
    if forgotten:
        raise ValueError(
            f"{', '.join(forgotten)}: no line in OPERATIONS of core/rights/table.py says who may call it. Add the id"
            " there, behind the right that it asks for."
        )
    used = {tag for path in result["paths"].values() for operation in path.values() for tag in operation["tags"]}
    known = {name: text for name, text in _TAGS.items() if name in used}
    result["tags"] = [{"name": name, "description": text} for name, text in known.items()]
    return result

from __future__ import annotations

from collections.abc import Collection, Mapping

GATEWAY = "gateway"
MANAGE = "manage"
PROMPTS_READ = "prompts:read"
FEEDBACK_WRITE = "feedback:write"
SCORES_WRITE = "scores:write"
TELEMETRY_WRITE = "telemetry:write"
METRICS_READ = "metrics:read"

DESCRIPTIONS: Mapping[str, str] = {
    GATEWAY: "Calls models, reads the published content of managed prompts, and sends telemetry.",
    MANAGE: "Has the whole management API of the project: reads and changes its keys, provider keys, settings,"
    " guardrails and prompts, reads all texts, and does what the narrower scopes open.",
    PROMPTS_READ: "Reads the published content of managed prompts.",
    FEEDBACK_WRITE: "Gives feedback on sessions. Safe in a browser as a key's only scope: each session then takes a"
    " token too.",
    SCORES_WRITE: "Records scores of requests.",
    TELEMETRY_WRITE: "Sends spans and logs over OTLP.",
    METRICS_READ: "Reads figures, and the state of the service for monitoring.",
}
SCOPES = tuple(DESCRIPTIONS)
# The scopes of the key that a command makes with a project or for a demonstration, which calls models and administers.
FIRST_KEY_SCOPES = (GATEWAY, MANAGE)


def is_public(scopes: Collection[str]) -> bool:
    return set(scopes) == {FEEDBACK_WRITE}

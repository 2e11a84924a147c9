from __future__ import annotations

from gateway.project_settings.declaration import Section

MODELS = Section(
    "Models and providers", "Which model a request gets, and what happens when a provider fails.", shapes_answers=True
)
REASONING = Section("Reasoning", "For requests that say nothing about it themselves.", shapes_answers=True)
CACHES = Section("Caches", "The gateway's own cache of answers, and the prompt caches of providers.")
RATES = Section("Rates", "For the whole project, counted by the minute. A request above a limit is refused with 429.")
BUDGETS = Section(
    "Budgets", "In US dollars; a month is that of UTC. Without a hard stop the month's budget only alerts."
)
END_USERS = Section("End users", "For every end user without limits of its own. A budget refuses with 429.")
ALERTS = Section("Alerts", "Sent at 50, 80 and 100 % of the month's budget.")
GUARDRAILS = Section(
    "Guardrails", "Begin with monitor: it refuses nothing, and shows here what enforce would do.", shapes_answers=True
)
GUARDRAILS_OF_REQUESTS = Section(
    "Guardrails of requests",
    "Checked before a request is counted or sent; the first rule that finds something refuses it.",
    shapes_answers=True,
)
GUARDRAILS_OF_ANSWERS = Section(
    "Guardrails of answers",
    "Checked while an answer is streamed. A dry run does not look at answers.",
    shapes_answers=True,
)
REQUEST_LOG = Section(
    "Request log",
    "Texts are kept as they were sent, personal data and what a guardrail refused included: whoever has a role"
    " with content reads them. Without texts there is no search, no dry run and no experiment on past requests.",
)
ROLLOUTS = Section("Rollouts", "For every rollout that does not say otherwise.")
AGENT = Section("In-app agent", "Answers questions about the project with the rights of whoever asks.")

# In the order of the page that shows them all.
SECTIONS = (
    MODELS,
    REASONING,
    CACHES,
    RATES,
    BUDGETS,
    END_USERS,
    ALERTS,
    GUARDRAILS,
    GUARDRAILS_OF_REQUESTS,
    GUARDRAILS_OF_ANSWERS,
    REQUEST_LOG,
    ROLLOUTS,
    AGENT,
)

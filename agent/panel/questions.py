from __future__ import annotations

from collections.abc import Mapping, Sequence

_GENERAL = (
    "Is anything wrong right now?",
    "What did we spend this month, and on what?",
    "Which requests failed in the last hour, and why?",
)

# The keys are the names of the pages' URLs.
_QUESTIONS: Mapping[str, Sequence[str]] = {
    "index": _GENERAL,
    "analytics_requests_changelist": (
        "What do the failed ones of these have in common?",
        "Which of these were the slowest, and why?",
        "Which users and models are these of?",
    ),
    "analytics_requests_detail": (
        "What happened to this request?",
        "Did the same happen to other requests of this user?",
        "Why did it take this long?",
    ),
    "session": (
        "Sum up this session.",
        "Where did it go wrong?",
        "What did it cost, and which requests cost the most?",
    ),
    "sessions": (
        "Which sessions went wrong today?",
        "Which sessions got bad feedback?",
        "Which were the most expensive?",
    ),
    "errors": (
        "Which of these errors are new?",
        "What causes the most frequent one?",
        "Whom did they concern?",
    ),
    "usage": (
        "Will we exceed the budget of this month?",
        "What drives the cost?",
        "Which users cost more than last week?",
    ),
    "providers": (
        "Which provider is slow or failing now?",
        "Which models are affected?",
        "How do the providers compare over the last day?",
    ),
    "prompt": (
        "How do the versions of this prompt compare?",
        "What changed with the last version?",
        "What does this prompt cost per request?",
    ),
    "rollouts_rollout_change": (
        "How is this rollout doing?",
        "Which requests of the target failed?",
        "How long until it is decided?",
    ),
    "guardrails": (
        "What did the guardrails refuse today?",
        "Which rule refuses the most, and rightly?",
        "Which users are refused most often?",
    ),
    "limits": (
        "Who is close to a limit?",
        "Will we exceed the budget of this month?",
        "Who was turned away by a limit today?",
    ),
    "evaluators": ("Which evaluators are there?", "What could an evaluator look for in these answers?"),
    "evaluator": ("What does this evaluator look for?", "Which answers would it call bad?"),
    "online_evaluations": (
        "What is scored while it is served, and what does it cost?",
        "Why do some of the answers that are due have no score?",
    ),
    "online_evaluation": (
        "How far is this online evaluation, and what is missing?",
        "How did its scores change this week?",
    ),
    "datasets": ("Which requests are worth an item of a data set?", "Which data sets are there?"),
    "dataset": ("What do the items of this data set ask?", "Which items expect no answer?"),
    "experiments": ("Which versions passed their experiments?", "Which experiments are worth another look, and why?"),
    "experiment": (
        "What did this experiment find?",
        "On which items does the target do worse, and why?",
        "Is the version ready for a rollout?",
    ),
    "reviews": ("How far do reviewers and judges agree?", "Which requests are worth a review?"),
    "review": ("How far do reviewers and judges agree here?", "Which requests got the lowest scores?"),
}
# Django's own addresses of pages that this product has pages for.
_ALIKE = {
    "prompts": "prompt",
    "prompts_promptconfig_change": "prompt",
    "prompt_editor": "prompt",
    "rollouts": "rollouts_rollout_change",
}


def questions_on(url_name: str) -> Sequence[str]:
    return _QUESTIONS.get(_ALIKE.get(url_name, url_name), _GENERAL)

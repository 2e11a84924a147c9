"""What provokes each code of docs/errors.md, by the section that names it.

A code is provoked by a call of an operation (`Ask` of Django's, `Send` to a worker of the gateway), which takes
milliseconds; or else by a test that is named here, as `file::function` below `tests`, because it needs a limit that is
used up, a store that is away, or another state that takes a scene of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from analytics.errors import AnalyticsLimitError, AnalyticsQueryError, AnalyticsUnavailableError
from tests.gateway.wire import ENDPOINT
from tests.openapi.test_successes import BODIES

NOBODY = "00000000-0000-4000-8000-000000000bad"
_ITEM_WITHOUT_ROLE = {"messages": [{"content": "x"}]}
_MESSAGES = "messages"
_QUERY = "analytics.clickhouse.client.query"
_LINES = "application/x-ndjson"
_TOOL_NOT_FOUND = "agent/tools/test_failures.py::test_tool__about_what_is_not_there__says_so_by_its_code"


@dataclass(frozen=True)
class Ask:
    """A management call by the project's key, by one of other `scopes`, or by a signed-in person of the role `who`.

    A `body` replaces that of `test_successes`; a text is the body's bytes. Calls of `before` come first. `patched` and
    `settings` hold values for the time of the call.
    """

    operation: str
    body: Any = None
    before: Sequence[str] = ()
    path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    who: str = ""
    scopes: Sequence[str] = ()
    method: str = ""
    content_type: str = "application/json"
    patched: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Send:
    """A request to a worker of the gateway: a chat completion with other `fields` (a text is the whole body), or a
    request to another `path`."""

    fields: Any = field(default_factory=dict)
    path: str = ENDPOINT
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    # The status and the error that the provider answers.
    vendor: tuple[int, Mapping[str, Any]] | None = None
    scopes: Sequence[str] = ("gateway",)


def _raising(error: Exception) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise error

    return refuse


Way = Ask | Send | str
Ways = dict[str, Sequence[Way]]


def _limited(operation: str, limit: str, *before: str, at: int = 1) -> Ask:
    return Ask(operation, before=before, patched={limit: at})


def _twice(operation: str, *before: str) -> Ask:
    return Ask(operation, before=(*before, operation))


MODELS: Ways = {
    "invalid_json": [Send("{"), Send("[]")],
    "missing_field": [Send({_MESSAGES: ...})],
    "invalid_value": [Send({"temperature": "hot"})],
    "empty_messages": [Send({_MESSAGES: []})],
    "too_many_messages": [Send({_MESSAGES: [{"role": "user", "content": "x"}] * 10_001})],
    "message_too_large": [
        "gateway/test_bodies.py::test_body__10_mb_in_one_message__is_refused_by_name",
        "gateway/test_bodies.py::test_body__above_32_mb__is_refused_whether_announced_or_not",
    ],
    "body_too_large": [Send("x" * 100_001, path="/api/gateway/v1/files")],
    "unsupported_parameter": [Send({"model": "anthropic/claude-sonnet-4-5", "n": 2})],
    "context_length_exceeded": [Send(vendor=(400, {"code": "context_length_exceeded", "message": "Too long."}))],
    "content_filter": [Send(vendor=(400, {"code": "content_filter", "message": "Filtered."}))],
    "provider_rejected": [Send(vendor=(400, {"message": "No such field."}))],
    "prompt_too_long": ["gateway/guardrails/test_input_stage.py::test_enforce__finding__is_refused_and_recorded"],
    "blocked_topic": ["gateway/guardrails/test_input_stage.py::test_enforce__finding__is_refused_and_recorded"],
    "blocked_tool": ["gateway/guardrails/test_input_stage.py::test_enforce__finding__is_refused_and_recorded"],
    "pii_detected": ["gateway/guardrails/test_input_stage.py::test_enforce__finding__is_refused_and_recorded"],
    "prompt_injection": ["gateway/guardrails/test_input_stage.py::test_enforce__finding__is_refused_and_recorded"],
    "low_quality": ["gateway/guardrails_output/test_quality.py::test_two_poor_answers_are_refused"],
    "missing_api_key": [Send(headers={"authorization": ""})],
    "invalid_api_key": [Send(headers={"authorization": "Bearer svc_nobody"})],
    "invalid_project": [Send(headers={"x-project-id": "x"}), Send(headers={"x-project-id": NOBODY})],
    "scope_missing": [Send(scopes=["manage"])],
    "project_mismatch": ["gateway/test_prompt_fetch.py::test_fetch__wrong_question__is_refused_by_name"],
    "model_not_allowed": ["gateway/test_restricted_keys.py::test_restricted_key__calls_what_its_patterns_name"],
    "model_not_found": [Send({"model": "nobodys-model"})],
    "prompt_config_not_found": [Send({"prompt_config": "nobodys"})],
    "prompt_label_not_found": [Send({"prompt_config": "support@nobodys"})],
    "prompt_version_not_found": [Send({"prompt_config": "support@9"})],
    "not_found": [
        Send(path="/api/gateway/v1/nothing"),
        Send(path="/api/gateway/v1/files/file-1", method="GET"),
        Send(path="/api/gateway/v1/batches/b", method="GET"),
    ],
    "method_not_allowed": [Send(method="PUT")],
    "request_timeout": ["gateway/test_bodies.py::test_body__slow_loris__is_given_up_after_the_set_time"],
    "prompt_include_broken": [Send({"prompt_config": "broken"})],
    "missing_variable": [Send({"prompt_config": "support"})],
    "invalid_variable": [Send({"prompt_config": "support", "prompt_variables": {"who": 5}})],
    "unknown_variable": [Send({"prompt_config": "support", "prompt_variables": {"who": "Ann", "x": "y"}})],
    "websocket_unsupported": [
        "gateway/test_peers.py::test_websocket__on_a_path_that_exists__asks_for_http_in_one_line"
    ],
    "requests_per_minute": [
        "gateway/limits/test_admission.py::test_requests__beyond_the_minute__are_429_and_count_nothing"
    ],
    "tokens_per_minute": [
        "gateway/limits/test_admission.py::test_tokens__more_than_the_minute_has__are_429_and_count_nothing"
    ],
    **{
        f"key_{limit}": ["gateway/limits/test_caller_admission.py::test_key_limit__used_up__refuses_that_key_alone"]
        for limit in ("requests_per_minute", "tokens_per_minute", "monthly_budget_exceeded", "total_budget_exceeded")
    },
    **{
        f"user_{limit}": [
            "gateway/limits/test_caller_admission.py::test_limit_of_every_user__used_up__refuses_that_user_alone"
        ]
        for limit in ("requests_per_minute", "tokens_per_minute", "monthly_budget_exceeded")
    },
    **{
        f"team_{limit}": [
            "gateway/limits/test_team_admission.py::test_team_limit__used_up_by_one_key__refuses_all_its_keys_and_no_other"
        ]
        for limit in ("requests_per_minute", "tokens_per_minute", "monthly_budget_exceeded", "total_budget_exceeded")
    },
    **{
        f"{whose}_concurrent_requests": [
            "gateway/limits/test_caller_admission.py::test_concurrency__beyond_the_limit__is_refused_until_a_request_ends"
        ]
        for whose in ("key", "user")
    },
    "team_concurrent_requests": [
        "gateway/limits/test_team_admission.py::test_concurrency__of_a_team__is_that_of_all_its_keys"
    ],
    "monthly_budget_exceeded": ["gateway/limits/test_admission.py::test_budget__used_up__is_429_and_reserves_nothing"],
    "session_budget_exceeded": ["gateway/limits/test_admission.py::test_budget__used_up__is_429_and_reserves_nothing"],
    "provider_error": [Send(vendor=(401, {"message": "No."}))],
    "credential_unreadable": [
        "gateway/test_unreadable.py::test_unreadable__only_provider_of_the_model__is_500_of_its_own"
    ],
    "internal_error": ["core/test_exception_handler.py::test_handle__each_kind__status_type_and_code"],
    "provider_unavailable": [Send(vendor=(500, {"message": "Broken."}))],
    "provider_timeout": [
        "gateway/test_faults.py::test_stream__breaks_after_output__one_error_event_and_no_second_start"
    ],
    "limits_unavailable": [
        "live/test_fleet.py::test_hosts__started_together_on_empty_stores__all_serve_one_shows_the_key_and_limits_hold_without_redis"
    ],
    "service_restarting": [
        "live/test_drain.py::test_stop__drain_time_over__streams_of_every_protocol_end_with_an_error_to_retry"
    ],
    "insufficient_quota": [Send(vendor=(429, {"type": "insufficient_quota", "code": "insufficient_quota"}))],
    "service_unavailable": [
        "gateway/test_database_away.py::test_database__away__known_keys_work_and_unknown_keys_get_503"
    ],
}

BEFORE_REQUESTS: Ways = {
    "malformed_request": ["gateway/test_peers.py::test_request__ambiguous__is_refused_and_closed"],
    "host_not_allowed": [
        "core/test_hosts.py::test_host__unknown_and_no_key__is_refused_in_one_line_that_names_the_setting"
    ],
    "request_timeout": ["gateway/test_peers.py::test_slow_peers__on_every_path__are_given_up_while_others_are_served"],
    "url_too_long": ["gateway/test_peers.py::test_head__beyond_the_limits__is_refused_and_closed"],
    "head_too_large": ["gateway/test_peers.py::test_head__beyond_the_limits__is_refused_and_closed"],
    "too_many_connections": [
        "config/test_acceptor.py::test_acceptor__full__turns_away_with_a_reason_until_there_is_room"
    ],
}

# What a path's parameter names that the project does not have. What only some paths of a parameter take for new or
# unknown is in `OTHERWISE`.
UNKNOWN: dict[str, str] = {
    "alert_id": "alert_not_found",
    "assignment_id": "assignment_not_found",
    "change_id": "change_not_found",
    "channel_id": "alert_channel_not_found",
    "chart_id": "chart_not_found",
    "comment_id": "comment_not_found",
    "config_id": "prompt_config_not_found",
    "conversation_id": "conversation_not_found",
    "dashboard_id": "dashboard_not_found",
    "dataset_id": "dataset_not_found",
    "dataset_item_id": "dataset_item_not_found",
    "destination_id": "trace_destination_not_found",
    "evaluation_id": "online_evaluation_not_found",
    "evaluator_id": "evaluator_not_found",
    "experiment_id": "experiment_not_found",
    "group_name": "model_group_not_found",
    "invitation_id": "invitation_not_found",
    "item_id": "review_item_not_found",
    "key_id": "not_found",
    "label": "prompt_label_not_found",
    "limit_id": "not_found",
    "member_id": "member_not_found",
    "model": "price_not_found",
    "name": "integration_not_found",
    "other_id": "prompt_version_not_found",
    "position": "experiment_item_not_found",
    "provider": "provider_not_found",
    "queue_id": "review_queue_not_found",
    "request_id": "request_not_found",
    "rollout_id": "rollout_not_found",
    "session_id": "session_not_found",
    "team_id": "team_not_found",
    "trace_id": "trace_not_found",
    "user_id": "user_not_found",
    "version_id": "prompt_version_not_found",
    "view_id": "view_not_found",
}
OTHERWISE: dict[tuple[str, str], tuple[int, str]] = {
    # A label and a price may be set anew, and the history of a price and the scores of a request are lists.
    ("putPromptLabel", "label"): (200, ""),
    ("setPrice", "model"): (200, ""),
    ("listPriceHistory", "model"): (200, ""),
    ("listRequestScores", "request_id"): (200, ""),
    # They may come before a session's first request (docs/errors.md).
    ("listSessionFeedback", "session_id"): (200, ""),
    ("sessionTelemetry", "session_id"): (200, ""),
    ("addSessionFeedback", "session_id"): (201, ""),
    ("createFeedbackToken", "session_id"): (201, ""),
    # The project has a rollout under way, which is told first.
    ("activatePromptVersion", "version_id"): (409, "rollout_active"),
    # docs/pricing.md
    ("setPrice", "provider"): (400, "invalid_value"),
    ("removePrice", "provider"): (400, "invalid_value"),
    ("listPriceHistory", "provider"): (400, "invalid_value"),
    ("getPrice", "provider"): (404, "price_not_found"),
}

MANAGEMENT: Ways = {
    "invalid_json": [Ask("createDashboard", "{")],
    "missing_field": [Ask("createDashboard", {})],
    "invalid_value": [
        Ask("createDashboard", {"name": 5}),
        Ask("createDashboard", {"name": "new", "no": 1}),
        Ask("listRequests", query={"limit": "many"}),
    ],
    "nothing_to_review": [Ask("createReviewQueue", {**BODIES["createReviewQueue"], "filter": {"model": "nobodys"}})],
    "invalid_dataset_item": [
        Ask("addDatasetItems", {"items": [_ITEM_WITHOUT_ROLE]}),
        Ask("addDatasetItems", {"items": [{"messages": [{"role": "user", "content": "x"}], "tags": ["t" * 51]}]}),
        Ask("changeDatasetItem", {"tags": ["t" * 51]}),
        Ask("importDataset", _ITEM_WITHOUT_ROLE, content_type=_LINES),
        Ask("importDataset", "{", content_type=_LINES),
    ],
    "texts_not_stored": ["analytics/datasets/test_sources.py::test_filter__texts_are_not_stored__is_said"],
    "no_request_matches": [Ask("addDatasetItemsFromRequests", {"request_ids": [NOBODY]})],
    "no_agent_model": ["agent/chat/test_refusals.py::test_chat__no_model__is_400_that_says_what_to_set"],
    "unusable_item": [
        "gateway/experiments/test_datasets.py::test_experiment__item_erased_before_its_turn__is_named_and_the_rest_goes_on"
    ],
    "missing_api_key": [Ask("listRequests", headers={"Authorization": ""})],
    "invalid_api_key": [Ask("listRequests", headers={"Authorization": "Bearer svc_nobody"})],
    "invalid_project": [
        Ask("listRequests", headers={"X-Project-Id": ""}),
        Ask("listRequests", headers={"X-Project-Id": "x"}),
        Ask("listRequests", headers={"X-Project-Id": NOBODY}),
    ],
    "scope_missing": [Ask("listRequests", scopes=("gateway",))],
    "permission_denied": [Ask("createDataset", who="reader")],
    "forbidden": ["core/test_exception_handler.py::test_handle__each_kind__status_type_and_code"],
    "project_mismatch": [Ask("listRequests", query={"project_id": NOBODY})],
    "local_login_off": [
        "sign_in/test_answers.py::test_local_login__switched_off__only_the_provider_is_offered_and_a_password_is_refused"
    ],
    "csrf_failed": ["core/test_authentication.py::test_staff_session__write_without_csrf_token__refused"],
    "origin_not_allowed": ["agent/mcp/test_origins.py::test_origin__any_other__may_not"],
    "prompt_label_protected": ["prompts/test_labels_api.py::test_protected_label__editor__cannot_touch_it"],
    "feedback_token_missing": [
        "analytics/scores/test_feedback_tokens.py::test_feedback__public_key_without_a_token__is_refused"
    ],
    "feedback_token_invalid": [
        "analytics/scores/test_feedback_tokens.py::test_feedback__public_key_with_what_is_no_token__is_refused"
    ],
    "not_your_comment": [Ask("changeComment", who="editor"), Ask("deleteComment", who="editor")],
    "agent_disabled": ["agent/test_conversations_api.py::test_endpoints__agent_switched_off__are_403"],
    "not_found": [Ask("listRequests", path="/api/llm/nothing")],
    "evaluator_version_not_found": [Ask("getEvaluatorCalibration", query={"version": 9})],
    "project_not_found": [_TOOL_NOT_FOUND],
    "user_not_found": [_TOOL_NOT_FOUND],
    "unknown_tool": ["agent/mcp/test_tools.py::test_call__wrongly__is_a_result_that_says_what_is_wrong"],
    "method_not_allowed": [Ask("listDashboards", method="PATCH")],
    "unsupported_media_type": [Ask("createDashboard", content_type="text/plain")],
    "body_too_large": [Ask("createDashboard", settings={"DATA_UPLOAD_MAX_MEMORY_SIZE": 9})],
    "conflict": ["core/test_exception_handler.py::test_handle__each_kind__status_type_and_code"],
    "integration_exists": [_twice("addIntegration")],
    "prompt_config_exists": [_twice("createPromptConfig")],
    "member_exists": [_twice("addMember")],
    "team_exists": [_twice("createTeam")],
    "model_group_exists": [_twice("createModelGroup")],
    "end_user_limit_exists": [_twice("createEndUserLimit")],
    "score_exists": ["analytics/scores/test_scores_api.py::test_score__score_id_of_another_request_or_name__409"],
    "review_queue_exists": [_twice("createReviewQueue")],
    "dataset_exists": [_twice("createDataset")],
    "evaluator_exists": [_twice("createEvaluator")],
    "trace_destination_exists": [_twice("createTraceDestination")],
    "dashboard_exists": [_twice("createDashboard")],
    "alert_exists": [_twice("createAlert")],
    "alert_channel_exists": [_twice("createAlertChannel")],
    "last_administrator": ["rights/test_members.py::test_members__last_administrator__stays"],
    "role_from_groups": ["sign_in/test_groups.py::test_member__by_group__is_not_lowered_or_removed_by_hand"],
    "team_has_keys": [
        "gateway/test_teams_api.py::test_delete__a_team_with_keys__is_refused_until_it_is_said_where_they_go"
    ],
    "key_ended": ["core/test_key_limits_api.py::test_rotate__bad_grace_or_ended_key__refused"],
    "prompt_included": [
        "prompts/test_composition.py::test_delete_and_rename__included_prompt__409_until_nothing_active_includes_it"
    ],
    "prompt_include_broken": [Send("{}", path="/api/llm/prompts/broken/render", scopes=["manage"])],
    "rollout_active": [Ask("createRollout"), Ask("activatePromptVersion")],
    "gate_not_passed": ["rollouts/test_gate.py::test_gate__no_experiment__refused_in_plain_words"],
    "rollout_moved": ["rollouts/test_api.py::test_promote__from_another_stage__409"],
    "transition_refused": [_twice("startRollout"), Ask("pauseRollout")],
    "nothing_to_undo": [_twice("undoActivation", "startRollout", "rollbackRollout", "activatePromptVersion")],
    "cannot_be_restored": [
        "gateway/test_settings_api.py::test_restore__of_what_is_not_taken_any_more__is_refused_by_name"
    ],
    "conversation_busy": [
        "agent/chat/test_breaks.py::test_second_chat__in_the_same_conversation__is_409_on_both_workers"
    ],
    "no_items": [
        Ask("createExperiment", {**BODIES["createExperiment"], "filter": {"model": "nobodys"}}, ("addIntegration",))
    ],
    "too_many_experiments": [
        _limited("createExperiment", "gateway.experiments.services.MAX_UNFINISHED_EXPERIMENTS", "addIntegration")
    ],
    "experiment_ended": [_twice("cancelExperiment")],
    "answer_given": [
        "gateway/experiments/test_application_answers.py::test_answer__sent_again__is_stored_once_and_another_is_refused"
    ],
    "not_of_application": [Ask("giveExperimentAnswer", {**BODIES["giveExperimentAnswer"], "label": "A"})],
    "review_item_taken": [
        "analytics/reviews/test_queues_api.py::test_next__two_people__get_different_items_until_none_is_left"
    ],
    "review_queue_closed": [Ask("addReviewItem", before=("closeReviewQueue",))],
    "review_queue_full": ["analytics/reviews/test_queues_api.py::test_item__added_where_it_cannot_be__refused"],
    "too_many_online_evaluations": [_limited("createOnlineEvaluation", "gateway.evaluations.services.MAX_ACTIVE")],
    "too_many_evaluators": [
        _limited("createEvaluator", "analytics.evaluators.services.MAX_EVALUATORS"),
        _limited("createEvaluatorVersion", "analytics.evaluators.services.MAX_VERSIONS"),
    ],
    "dataset_full": [
        _limited("addDatasetItems", "analytics.datasets.services.MAX_ITEMS"),
        Ask("importDataset", content_type=_LINES, patched={"analytics.datasets.services.MAX_ITEMS": 1}),
    ],
    "too_many_datasets": [_limited("createDataset", "analytics.datasets.services.MAX_DATASETS")],
    "dashboard_not_owned": [
        "analytics/dashboards/test_dashboards.py::test_dashboard__shared__seen_by_all_and_changed_by_owner_and_editors"
    ],
    "too_many_model_groups": [_limited("createModelGroup", "gateway.model_groups.services.ModelGroups.maximum")],
    "too_many_users": [_limited("createEndUserLimit", "gateway.end_users.services.EndUserLimits.maximum")],
    "too_many_invitations": [_limited("createInvitation", "core.members.invitations.MAX_INVITATIONS")],
    "too_many_teams": [_limited("createTeam", "core.teams.services.Teams.maximum")],
    "too_many_prices": [_limited("setPrice", "integrations.pricing.services.MAX_OVERRIDES", at=0)],
    "too_many_alerts": [_limited("createAlert", "gateway.figure_alerts.services.FigureAlerts.maximum")],
    "too_many_alert_channels": [_limited("createAlertChannel", "gateway.alerts.channels.AlertChannels.maximum")],
    "too_many_trace_destinations": [
        _limited("createTraceDestination", "analytics.trace_export.destinations.TraceDestinations.maximum")
    ],
    "too_many_dashboards": [_limited("createDashboard", "analytics.dashboards.services.MAX_DASHBOARDS")],
    "too_many_charts": [_limited("createChart", "analytics.dashboards.services.MAX_CHARTS")],
    "too_many_comments": [_limited("addComment", "analytics.discussions.services.MAX_COMMENTS")],
    "sync_running": ["integrations/pricing/test_pricing_api.py::test_sync__running__409"],
    "sync_broken_off": ["integrations/pricing/test_sync.py::test_sync__taken_for_dead_meanwhile__changes_nothing"],
    "too_many_logins": [
        "core/test_logins.py::test_login__failed_too_often__is_refused_alike_for_names_that_exist_or_not"
    ],
    "internal_error": ["core/test_exception_handler.py::test_handle__each_kind__status_type_and_code"],
    "analytics_query": [
        Ask("totals", patched={_QUERY: _raising(AnalyticsQueryError("No such column.", server_code=16, reason=""))})
    ],
    "analytics_limit": [Ask("totals", patched={_QUERY: _raising(AnalyticsLimitError("It takes too long."))})],
    "analytics_unavailable": [Ask("totals", patched={_QUERY: _raising(AnalyticsUnavailableError("It is away."))})],
    "undecryptable_secret": ["core/test_crypto.py::test_rotate__then_old_key_removed__still_readable"],
    "service_unavailable": ["core/test_exception_handler.py::test_handle__each_kind__status_type_and_code"],
    "cache_unavailable": [Ask("emptyCache", settings={"REDIS_URL": "redis://127.0.0.1:1/0"})],
    "health_unavailable": [
        "analytics/test_provider_latency_endpoint.py::test_provider_latency__redis_away__503_that_says_so"
    ],
    "repair_busy": [
        "analytics/deletion/test_interrupted.py::test_deletion__while_another_repair_goes_on__is_done_afterwards"
    ],
}

# Exporters get `google.rpc.Status`, which has the message and no code.
TELEMETRY: Ways = {
    "malformed_export": ["analytics/telemetry/test_decoding.py::test_json__any_document__rows_or_a_clear_refusal"],
    "telemetry_busy": ["analytics/telemetry/test_gathering.py::test_posts__more_than_may_wait__refused_at_once"],
}

SECTIONS = {
    "Requests to models": MODELS,
    "Before a request is one": BEFORE_REQUESTS,
    "Management API": MANAGEMENT,
    "Telemetry": TELEMETRY,
}

"""The one table of access rights: every operation of the API, every tool of the agent, every page of the admin.

API, admin, agent and MCP ask it through `core.rights.asking`. Whatever is added needs its line here:

- an operation by its id, the first argument of `@operation`, in OPERATIONS;
- a scope of API keys below `manage` by the ids of the operations that it opens in SCOPE_OPERATIONS;
- a tool of the agent by its name in TOOLS;
- a model that is registered in the admin as one `Rows` in MODELS; any other page of the admin by the name of its URL in
  PAGES.

What has no line is for administrators (operations) or superusers (pages), and fails `manage.py check` or `make openapi`
and `tests/rights`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.rights.scopes import (
    FEEDBACK_WRITE,
    GATEWAY,
    MANAGE,
    METRICS_READ,
    PROMPTS_READ,
    SCORES_WRITE,
    TELEMETRY_WRITE,
)
from core.roles import PROJECT_RIGHTS, Right

READ, READ_CONTENT, EDIT, ADMINISTER = PROJECT_RIGHTS
OPERATE, OPEN, SIGNED_IN, KEY, NOBODY = Right.OPERATE, Right.OPEN, Right.SIGNED_IN, Right.KEY, Right.NOBODY


def _each(right: Right, names: str) -> dict[str, Right]:
    return dict.fromkeys(names.split(), right)


# Keys have scopes and never a role: `manage` brings every right in its project, other scopes none.
SCOPE_RIGHTS: Mapping[str, frozenset[Right]] = {MANAGE: frozenset({*PROJECT_RIGHTS, KEY})}
_FIGURES = {
    **_each(READ, "overview userMetrics modelMetrics operationMetrics dailyCost modelCost usageMetrics promptMetrics"),
    **_each(READ, "promptCacheMetrics"),
    **_each(READ, "errorMetrics errorGroups providerLatency providerHistory failovers totals"),
    **_each(READ, "guardrailMetrics guardrailUsage scoreMetrics feedbackMetrics badRatingMetrics"),
    **_each(READ, "cost costIntervals exportCost priceGaps"),
}
_PROMPTS = ("getPrompt", "getPromptByName", "renderPrompt")
_TELEMETRY = ("exportTraces", "exportLogs", "exportMetrics")
# The operations that a scope opens without any right. Models, outside of this table, are for `gateway` alone.
SCOPE_OPERATIONS: Mapping[str, frozenset[str]] = {
    # A key without `manage` has no right, so that MCP offers it the prompts and no tool.
    GATEWAY: frozenset({*_TELEMETRY, *_PROMPTS, "callAgentTools"}),
    PROMPTS_READ: frozenset({*_PROMPTS, "callAgentTools"}),
    FEEDBACK_WRITE: frozenset({"addSessionFeedback", "createFeedbackToken"}),
    SCORES_WRITE: frozenset({"recordScore", "recordScores"}),
    TELEMETRY_WRITE: frozenset(_TELEMETRY),
    METRICS_READ: frozenset({*_FIGURES, "prometheusMetrics"}),
}


OPERATIONS: Mapping[str, Right] = {
    # Metrics and the request log without its texts; READ_CONTENT adds the texts to the same answers.
    **_each(READ, "listSessions getSession listSessionRequests listSessionFeedback sessionTelemetry sessionTimeline"),
    **_each(READ, "getUser getTrace listRequests getRequest requestNeighbours listScores listRequestScores"),
    **_each(READ, "requestFacets requestHistogram lookup"),
    # Views of lists are private: everybody sees and changes the own ones alone.
    **_each(READ, "listViews saveView deleteView"),
    # So are dashboards that are not shared; those that are, their owners and editors change (analytics.dashboards).
    **_each(READ, "listFigures listDashboards createDashboard getDashboard changeDashboard deleteDashboard"),
    **_each(READ, "createChart changeChart deleteChart chartData"),
    **_FIGURES,
    **_each(READ, "listProblems listGuardrailRequests usage"),
    # Operations that show texts written by people and models.
    **_each(READ_CONTENT, "search exportRequests sessionTranscript requestConversation"),
    **_each(READ_CONTENT, "chatWithAgent listConversations createConversation deleteConversation"),
    **_each(READ_CONTENT, "listConversationMessages"),
    **_each(EDIT, "recordScore recordScores addSessionFeedback createFeedbackToken"),
    # Review queues name requests and show no texts, but for the conversation of an item.
    **_each(READ, "listReviewQueues getReviewQueue listReviewItems reviewAgreement"),
    **_each(READ_CONTENT, "reviewItemConversation"),
    **_each(EDIT, "createReviewQueue closeReviewQueue addReviewItem nextReviewItem assignReviewItems"),
    **_each(EDIT, "scoreReviewItem skipReviewItem"),
    # The texts of items are left out for READ.
    **_each(READ, "listDatasets getDataset listDatasetVersions listDatasetItems getDatasetItem"),
    **_each(READ_CONTENT, "exportDataset"),
    **_each(EDIT, "createDataset changeDataset deleteDataset addDatasetItems addDatasetItemsFromRequests"),
    **_each(EDIT, "addDatasetItemsFromReview importDataset changeDatasetItem removeDatasetItem"),
    # The texts of comments are left out for READ; of others' comments only administrators change any.
    **_each(READ, "listComments listAssignments"),
    **_each(EDIT, "addComment changeComment deleteComment assign changeAssignment deleteAssignment"),
    **_each(ADMINISTER, "deleteRequest deleteSession deleteUser"),
    # Operations on managed prompts and rollouts.
    **_each(READ, "listPromptConfigs getPromptConfig listPromptVersions getPromptVersion diffPromptVersions"),
    **_each(READ, "getPrompt getPromptByName renderPrompt listPromptLabels listPromptLabelMoves"),
    **_each(READ, "listActivations exportPromptConfig exportPrompts listRollouts getRollout rolloutMetrics"),
    **_each(READ, "forecastRollout"),
    **_each(EDIT, "createPromptConfig updatePromptConfig deletePromptConfig createPromptVersion importPrompts"),
    **_each(EDIT, "pushPromptFile"),
    # Of a protected label, only administrators may do the same, or bring one with an import.
    **_each(EDIT, "activatePromptVersion undoActivation checkPrompt putPromptLabel deletePromptLabel"),
    **_each(EDIT, "createRollout startRollout pauseRollout promoteRollout rollbackRollout completeRollout"),
    **_each(EDIT, "tryModel compareModels listPlaygroundModels"),
    **_each(READ, "listEvaluators getEvaluator getEvaluatorCalibration"),
    **_each(EDIT, "createEvaluator changeEvaluator createEvaluatorVersion dryRunEvaluator"),
    **_each(READ, "listOnlineEvaluations getOnlineEvaluation"),
    **_each(EDIT, "createOnlineEvaluation changeOnlineEvaluation deleteOnlineEvaluation"),
    **_each(READ, "listExperiments getExperiment listExperimentItems"),
    **_each(EDIT, "createExperiment estimateExperiment cancelExperiment pickExperimentWinner deleteExperiment"),
    **_each(EDIT, "giveExperimentAnswer"),
    # Operations on the project's configuration.
    **_each(ADMINISTER, "listApiKeys issueApiKey getApiKey changeApiKey rotateApiKey revokeApiKey"),
    **_each(ADMINISTER, "listMembers addMember changeMember removeMember"),
    **_each(ADMINISTER, "listInvitations createInvitation deleteInvitation"),
    **_each(ADMINISTER, "listIntegrations addIntegration updateIntegration removeIntegration testIntegration"),
    **_each(ADMINISTER, "getSettings putSettings listSettingsChanges restoreSettings emptyCache"),
    **_each(ADMINISTER, "dryRunGuardrails listAudit"),
    **_each(ADMINISTER, "listTraceDestinations createTraceDestination getTraceDestination changeTraceDestination"),
    **_each(ADMINISTER, "deleteTraceDestination testTraceDestination"),
    **_each(READ, "listEndUserLimits getEndUserLimit"),
    **_each(ADMINISTER, "createEndUserLimit changeEndUserLimit deleteEndUserLimit"),
    **_each(READ, "listAlerts getAlert listAlertEvents"),
    **_each(EDIT, "createAlert changeAlert deleteAlert silenceAlert testAlert listAlertChannels getAlertChannel"),
    **_each(ADMINISTER, "createAlertChannel changeAlertChannel deleteAlertChannel"),
    # Who belongs to a team is for administrators, as who belongs to the project is.
    **_each(READ, "listTeams getTeam"),
    **_each(ADMINISTER, "createTeam changeTeam deleteTeam listTeamMembers replaceTeamMembers"),
    **_each(READ, "listModelGroups getModelGroup listCatalogModels"),
    **_each(ADMINISTER, "createModelGroup replaceModelGroup deleteModelGroup"),
    **_each(READ, "listPrices listProviderPrices getPrice listPriceHistory listPriceSyncs"),
    **_each(ADMINISTER, "setPrice removePrice syncPrices"),
    # Operations for applications; a session of the admin opens none of them.
    **_each(
        KEY, "createChatCompletion createResponse createMessage countMessageTokens createCompletion getModel listModels"
    ),
    **_each(KEY, "generateContent streamGenerateContent countContentTokens getGeminiModel listGeminiModels"),
    **_each(KEY, "embedContent batchEmbedContents"),
    **_each(KEY, "createEmbeddings createRanking createModeration createImage createSpeech createTranscription"),
    **_each(KEY, "uploadFile listFiles getFile deleteFile getFileContent createBatch listBatches getBatch cancelBatch"),
    **_each(KEY, "createMessageBatch listMessageBatches getMessageBatch deleteMessageBatch cancelMessageBatch"),
    **_each(KEY, "getMessageBatchResults getResponse deleteResponse"),
    **_each(KEY, "exportTraces exportLogs exportMetrics callAgentTools prometheusMetrics"),
    **_each(OPEN, "checkGateway checkHealth checkReadiness"),
}

TOOLS: Mapping[str, Right] = {
    **_each(READ, "get_project list_models list_model_groups list_prices get_price"),
    **_each(READ, "get_metrics_overview list_user_metrics list_model_metrics list_usage_metrics"),
    **_each(READ, "get_error_breakdown get_provider_latency list_problems get_score_metrics get_feedback_metrics"),
    **_each(READ, "list_bad_ratings"),
    **_each(READ, "list_error_groups list_review_queues get_review_agreement list_evaluators get_evaluator"),
    **_each(READ, "get_evaluator_calibration"),
    **_each(READ, "list_online_evaluations get_online_evaluation"),
    # As in the API, the texts of an experiment's items are null for a reader without content.
    **_each(READ, "list_datasets list_experiments get_experiment list_experiment_items"),
    **_each(EDIT, "estimate_experiment"),
    **_each(READ, "list_sessions list_prompt_configs get_prompt_config list_prompt_versions get_prompt_version"),
    **_each(READ, "diff_prompt_versions list_prompt_activations list_rollouts get_rollout get_rollout_metrics"),
    **_each(READ, "list_prompt_labels list_prompt_label_moves list_prompt_caches"),
    **_each(READ, "list_model_costs list_daily_costs get_budget_status get_user_spend get_session_spend"),
    **_each(READ, "list_teams list_team_costs"),
    **_each(READ_CONTENT, "list_requests get_request search_requests get_session list_session_requests"),
    **_each(READ_CONTENT, "list_dataset_items list_scores list_session_feedback list_session_spans list_session_logs"),
    **_each(ADMINISTER, "get_gateway_settings list_integrations"),
}


@dataclass(frozen=True, slots=True)
class Rows:
    view: Right
    add: Right = NOBODY
    change: Right = NOBODY
    delete: Right = NOBODY


# The keys are the tables' `app_model`.
MODELS: Mapping[str, Rows] = {
    "auth_user": Rows(OPERATE, OPERATE, OPERATE, OPERATE),
    "core_project": Rows(READ, OPERATE, ADMINISTER, OPERATE),
    "core_membership": Rows(ADMINISTER),
    "core_host": Rows(OPERATE, delete=OPERATE),
    "core_apikey": Rows(ADMINISTER, delete=ADMINISTER),
    "integrations_providerintegration": Rows(ADMINISTER),
    "integrations_modelprice": Rows(READ),
    "integrations_priceperiod": Rows(READ),
    "integrations_pricesynclog": Rows(READ),
    "analytics_deletion": Rows(READ),
    "analytics_score": Rows(READ),
    "analytics_feedback": Rows(READ),
    "analytics_requests": Rows(READ),
    "analytics_evaluator": Rows(READ),
    "analytics_evaluatorversion": Rows(READ),
    "analytics_tracedestination": Rows(ADMINISTER),
    "prompts_promptconfig": Rows(READ),
    "prompts_promptversion": Rows(READ),
    "prompts_promptactivation": Rows(READ),
    "rollouts_rollout": Rows(READ, delete=EDIT),
    "gateway_budgetalert": Rows(READ),
    "gateway_alertsecret": Rows(ADMINISTER, change=ADMINISTER),
    "gateway_operatoralert": Rows(OPERATE),
    "gateway_gatewaysettings": Rows(ADMINISTER),
    "gateway_settingschange": Rows(ADMINISTER),
    "gateway_playground": Rows(EDIT),
    "agent_panel": Rows(READ_CONTENT),
    "agent_conversation": Rows(READ_CONTENT, delete=READ_CONTENT),
}

PAGES: Mapping[str, Right] = {
    **_each(OPEN, "login sign_in sign_in_callback second_factor second_factor_code invitation"),
    **_each(
        SIGNED_IN, "index tables logout password_change password_change_done jsi18n app_list view_on_site autocomplete"
    ),
    **_each(OPERATE, "auth_user_password_change"),
    **_each(READ, "guardrails limits end_users teams prices price model_groups models model"),
    **_each(ADMINISTER, "settings audit members provider_keys provider_key api_keys trace_destinations"),
    **_each(ADMINISTER, "alert_channels"),
    **_each(READ, "analytics_requests_detail rollouts connect"),
    **_each(READ, "prompts prompt evaluators evaluator experiments experiment online_evaluations online_evaluation"),
    **_each(EDIT, "prompt_editor prompt_new evaluator_form experiment_form"),
    **_each(READ, "sessions session user search"),
    **_each(READ, "reviews review datasets dataset alerts alert assignments request_link"),
    **_each(READ, "errors providers usage usage_export prompt_caches"),
    **_each(READ, "dashboards dashboard chart_form"),
    **_each(EDIT, "rollout_form alert_form review_labels"),
    **_each(READ_CONTENT, "dataset_export"),
    **_each(READ_CONTENT, "agent_panel_beside agent_panel_rendered analytics_requests_image analytics_requests_export"),
    **_each(READ_CONTENT, "review_image"),
    **{
        f"{model}_{page}": right
        for model, rows in MODELS.items()
        for page, right in {
            "changelist": rows.view,
            "add": rows.add,
            "history": rows.view,
            "delete": rows.delete,
            # The page also shows values that do not change; saving them needs `rows.change`.
            "change": rows.view,
        }.items()
    },
}

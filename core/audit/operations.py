"""Operations with an unsafe method that change no configuration.

Any other operation that changes no row of `core.audit.subjects` gets its own entry, with the ids of its path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from core.audit.recording import CHANGED, CREATED, DELETED, Change


def _each(names: str) -> frozenset[str]:
    return frozenset(names.split())


# These operations make data and not configuration, or they make nothing at all.
NOT_AUDITED = _each(
    "search chatWithAgent createConversation deleteConversation recordScore recordScores addSessionFeedback"
    " createFeedbackToken tryModel compareModels testIntegration dryRunGuardrails forecastRollout saveView deleteView"
    " checkPrompt createExperiment estimateExperiment cancelExperiment pickExperimentWinner deleteExperiment"
    " giveExperimentAnswer dryRunEvaluator"
    " createDashboard changeDashboard deleteDashboard createChart changeChart deleteChart"
    " testTraceDestination testAlert renderPrompt"
    " addReviewItem nextReviewItem assignReviewItems scoreReviewItem skipReviewItem"
    " addDatasetItems addDatasetItemsFromRequests addDatasetItemsFromReview importDataset changeDatasetItem"
)
_ACTIONS = {"POST": CREATED, "DELETE": DELETED}
# A PUT that replaces values with the same ones changes nothing.
_WITHOUT_ENTRY = _each(
    "putSettings restoreSettings changeApiKey updateIntegration changeMember updatePromptConfig setPrice revokeApiKey"
    " replaceModelGroup changeEndUserLimit changeTraceDestination changeAlert changeAlertChannel silenceAlert"
    " changeTeam replaceTeamMembers changeEvaluator createEvaluatorVersion pushPromptFile"
    " changeComment assign changeAssignment"
    " deleteSession deleteRequest deleteUser"
)


def change_of_operation(operation: str, method: str, path: Mapping[str, Any], project_id: UUID) -> list[Change]:
    if operation in NOT_AUDITED or operation in _WITHOUT_ENTRY:
        return []
    named = "/".join(str(value) for value in path.values())
    return [Change(operation, named, named, project_id, _ACTIONS.get(method, CHANGED))]

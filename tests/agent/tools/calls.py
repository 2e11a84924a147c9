"""One call of every tool that finds something in a world."""

from __future__ import annotations

from typing import Any

from tests.agent.tools.world import World


def calls(world: World) -> dict[str, dict[str, Any]]:
    """Maps tools to arguments. A tool that is missing here fails every test that calls it."""
    session, config, rollout = world.session_id, world.config.name, str(world.rollout.pk)
    of_session, of_config, of_rollout = {"session_id": session}, {"config": config}, {"rollout_id": rollout}
    return {
        "get_project": {},
        "get_gateway_settings": {},
        "list_integrations": {},
        "list_model_groups": {},
        "list_sessions": {},
        "get_session": of_session,
        "list_session_requests": of_session,
        "list_requests": {},
        "get_request": {"request_id": world.request_ids[0]},
        "search_requests": {"query": "refunds"},
        "list_scores": {},
        "get_score_metrics": {},
        "list_session_feedback": of_session,
        "get_feedback_metrics": {},
        "list_bad_ratings": {},
        "list_review_queues": {},
        "get_review_agreement": {"queue_id": world.queue_id},
        "list_evaluators": {},
        "get_evaluator": {"evaluator_id": world.evaluator_id},
        "get_evaluator_calibration": {"evaluator_id": world.evaluator_id},
        "list_online_evaluations": {},
        "get_online_evaluation": {"evaluation_id": world.evaluation_id},
        "list_datasets": {},
        "list_dataset_items": {"dataset_id": world.dataset_id},
        "list_experiments": {},
        "get_experiment": {"experiment_id": world.experiment_id},
        "list_experiment_items": {"experiment_id": world.experiment_id},
        "estimate_experiment": {
            "candidates": [{"version_id": str(world.version_ids[0])}, {"version_id": str(world.version_ids[1])}],
            "dataset_id": world.dataset_id,
        },
        "list_prompt_configs": {},
        "get_prompt_config": of_config,
        "list_prompt_versions": of_config,
        "get_prompt_version": of_config,
        "diff_prompt_versions": {**of_config, "from_version": "1", "to_version": "2"},
        "list_prompt_activations": of_config,
        "list_prompt_labels": of_config,
        "list_prompt_label_moves": of_config,
        "list_rollouts": {},
        "get_rollout": of_rollout,
        "get_rollout_metrics": of_rollout,
        "list_models": {},
        "list_prices": {"source": "manual"},
        "get_price": {"provider": "openai", "model": world.model},
        "get_metrics_overview": {},
        "list_user_metrics": {},
        "list_model_metrics": {},
        "list_usage_metrics": {"interval": "day"},
        "get_error_breakdown": {},
        "list_error_groups": {},
        "get_provider_latency": {},
        "list_problems": {},
        "list_session_spans": of_session,
        "list_session_logs": of_session,
        "list_daily_costs": {},
        "list_model_costs": {},
        "list_teams": {},
        "list_team_costs": {},
        "list_prompt_caches": {},
        "get_budget_status": {},
        "get_session_spend": of_session,
        "get_user_spend": {"user_id": f"{world.marker}-user"},
    }

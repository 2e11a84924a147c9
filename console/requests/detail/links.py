from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from analytics.wire.requests import RequestDetail
from console.settings_form.limit_links import limit_address
from console.settings_form.wording import LIMITS
from core.models import ApiKey
from core.selectors import team_names
from core.ui.formats import duration, moment, money, number
from core.ui.pages import Visit
from core.ui.tiles import Tile
from integrations.pricing.models import SOURCE_TITLES
from integrations.registry import provider_title

_LOG = "analytics_requests_changelist"
_GOOD, _BAD = "good", "bad"
_COST_SOURCES = {
    "provider": "stated by the provider",
    "mixed": "from several sources",
    **{source: f"by {title}" for source, title in SOURCE_TITLES.items()},
}


@dataclass(frozen=True, slots=True)
class Fact:
    label: str
    value: object
    href: str = ""
    identifier: str = ""
    # Further links: label and address.
    more: tuple[tuple[str, str], ...] = ()


def tiles(found: RequestDetail) -> list[Tile]:
    tokens = f"{number(found['prompt_tokens'])} in, {number(found['completion_tokens'])} out"
    cost = (
        "not charged"
        if found["cost_usd"] is None and not found["attempts"]
        else _COST_SOURCES.get(found["cost_source"], "")
        if found["cost_source"]
        else ""
    )
    ttft = found["ttft_ms"]
    return [
        Tile(
            "Outcome",
            found["outcome"],
            note=f"HTTP {found['status_code']}" + (f", {found['error']['code']}" if found["error"] else ""),
            kind=_GOOD if found["outcome"] == "success" else _BAD if found["outcome"] == "error" else "warn",
        ),
        Tile("Time", duration(found["latency_ms"]), note=f"first token {duration(ttft)}" if ttft else ""),
        Tile("Cost", money(0 if cost == "not charged" else found["cost_usd"]), note=cost),
        Tile(
            "Tokens", number(found["total_tokens"]), note=tokens + (", estimated" if found["tokens_estimated"] else "")
        ),
        Tile(
            "Attempts", number(len(found["attempts"])), note="answered by a fallback" if found["fallback_used"] else ""
        ),
    ]


def facts(visit: Visit, found: RequestDetail) -> Iterator[Fact]:
    for fact in (*_people(visit, found), *_models(visit, found), *_prompt(visit, found), *_rest(visit, found)):
        if fact.value not in (None, "", 0) or fact.identifier:
            yield fact


def _people(visit: Visit, found: RequestDetail) -> Iterator[Fact]:
    project_id, session_id, user_id = visit.project.pk, found["session_id"], found["user_id"]
    yield Fact(
        "Request",
        "",
        visit.link("analytics_requests_detail", project_id, found["request_id"]),
        str(found["request_id"]),
    )
    yield Fact("Arrived", moment(found["created_at"]))
    if session_id:
        page = visit.link_if_there("session", project_id, session_id)
        yield Fact("Session", session_id, page, "", (("its trace", f"{page}#panel-timeline"),) if page else ())
    yield Fact("User", user_id, visit.link_if_there("user", project_id, user_id))
    if found["api_key_id"]:
        yield _key(visit, found["api_key_id"])
    if found["team_id"]:
        yield _team(visit, found["team_id"])


def _key(visit: Visit, key_id: int) -> Fact:
    name = ApiKey.objects.for_project(visit.project.pk).filter(pk=key_id).values_list("name", flat=True).first()
    href = visit.link_if_there(_LOG, api_key_id=key_id)
    return Fact("API key", name or "a deleted key", href)


def _team(visit: Visit, team_id: int) -> Fact:
    name = team_names(visit.project.pk, [team_id]).get(team_id)
    return Fact("Team", name or "a deleted team", visit.link_if_there("teams", team=team_id) if name else "")


def _models(visit: Visit, found: RequestDetail) -> Iterator[Fact]:
    provider, model = found["provider"], found["model"]
    yield Fact("Provider", provider_title(provider), visit.link_if_there(_LOG, provider=provider))
    price = visit.link_if_there("prices", q=model) or visit.link_if_there("integrations_modelprice_changelist", q=model)
    yield Fact(
        "Model", model, visit.link_if_there(_LOG, model=model), more=(("its price", price),) if price and model else ()
    )
    if found["requested_model"] != model:
        requested = found["requested_model"]
        yield Fact("Model asked for", requested, visit.link_if_there(_LOG, requested_model=requested))
    native = ", passed on as it came" if found["native"] else ""
    yield Fact("Operation", f"{found['operation']}{', streamed' if found['stream'] else ''}{native}")


def _prompt(visit: Visit, found: RequestDetail) -> Iterator[Fact]:
    config_id, rollout_id = found["prompt_config_id"], found["rollout_id"]
    if config_id:
        version = found["prompt_version"]
        of_version = visit.link_if_there(_LOG, prompt_config_id=config_id, prompt_version=version)
        yield Fact(
            "Prompt", "", _page_of(visit, config_id, "prompt", "prompts_promptconfig_change"), str(config_id),
            ((f"requests of version {version}", of_version),),
        )  # fmt: skip
    if rollout_id:
        of_arm = visit.link_if_there(_LOG, rollout_id=rollout_id, variant=found["variant"])
        yield Fact(
            "Rollout", "", _page_of(visit, rollout_id, "rollout", "rollouts_rollout_change"), str(rollout_id),
            ((f"requests of the arm {found['variant']}", of_arm),),
        )  # fmt: skip


def _page_of(visit: Visit, record_id: UUID, *names: str) -> str:
    return next((href for name in names if (href := visit.link_if_there(name, record_id))), "")


def _rest(visit: Visit, found: RequestDetail) -> Iterator[Fact]:
    error = found["error"]
    if error:
        yield Fact("Error", error["message"] or error["type"])
        limit = LIMITS.get(error["code"] or "", "")
        yield Fact("Refused by", limit, limit_address(visit, error["code"] or "", team_id=found["team_id"] or 0))
    yield Fact("Finish reason", found["finish_reason"])
    yield Fact("Cache", "" if found["cache"] == "skip" else found["cache"])
    yield Fact("Cached tokens read", number(found["cache_read_tokens"]) if found["cache_read_tokens"] else "")
    yield Fact("Cached tokens written", number(found["cache_write_tokens"]) if found["cache_write_tokens"] else "")
    yield Fact("Reasoning tokens", number(found["reasoning_tokens"]) if found["reasoning_tokens"] else "")
    yield Fact("Retries", found["retry_count"])
    yield Fact("Schema", "the answer broke it" if found["contract_violation"] else "")
    yield Fact("Content", "neither text nor call" if found["empty_answer"] else "")
    yield Fact("Source", "" if found["source"] == "gateway" else found["source"])

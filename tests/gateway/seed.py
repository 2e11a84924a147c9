"""Makes projects, keys and integrations inside a running service: reads a JSON command from each line, writes a JSON
answer to a line.

It is a process of its own, because the service under test has another database than the test process.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from datetime import timedelta
from typing import Any
from uuid import UUID

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")


def make_project(command: dict[str, Any]) -> dict[str, Any]:
    from core.models import Project

    project = Project.objects.create(name=command["name"])
    for integration in command.get("integrations", []):
        _save_integration(str(project.id), integration)
    for price in command.get("prices", []):
        set_price({"project_id": str(project.id), **price})
    keys = [make_key({"project_id": str(project.id), **key})["key"] for key in command["keys"]]
    return {"project_id": str(project.id), "keys": keys}


def make_key(command: dict[str, Any]) -> dict[str, Any]:
    return make_given_key({**command, "key": draw_key({})["key"]})


def draw_key(command: dict[str, Any]) -> dict[str, Any]:
    """Returns a key that does not exist yet."""
    return {"key": f"svc_{secrets.token_urlsafe(32)}"}


def make_given_key(command: dict[str, Any]) -> dict[str, Any]:
    """Saves the row of a given key directly: the product draws keys itself and refuses to issue an expired one."""
    from django.utils import timezone

    from core.keys.services import hash_key
    from core.models import ApiKey

    expires_in = command.get("expires_in")
    ApiKey.objects.create(
        project_id=command["project_id"],
        name="test",
        prefix=command["key"][:8],
        key_hash=hash_key(command["key"]),
        scopes=command["scopes"],
        expires_at=None if expires_in is None else timezone.now() + timedelta(seconds=expires_in),
    )
    return {"key": command["key"]}


def revoke_key(command: dict[str, Any]) -> dict[str, Any]:
    from core.keys import services as keys
    from core.models import ApiKey

    keys.revoke_key(ApiKey.objects.get(key_hash=keys.hash_key(command["key"])))
    return {}


def save_integration(command: dict[str, Any]) -> dict[str, Any]:
    _save_integration(command["project_id"], command)
    return {}


def set_routing(command: dict[str, Any]) -> dict[str, Any]:
    from gateway.services import replace_settings

    replace_settings(project_id=UUID(command.pop("project_id")), values=command, actor="test")
    return {}


def make_prompt(command: dict[str, Any]) -> dict[str, Any]:
    """Makes a config with its versions, the first of them active, in one transaction: workers see all or none."""
    from django.db import transaction

    from prompts.services import create_config

    with transaction.atomic():
        config = create_config(project_id=UUID(command["project_id"]), name=command["name"])
        added = {"project_id": command["project_id"], "config_id": str(config.pk)}
        ids = [add_prompt_version({**added, "content": content})["id"] for content in command["versions"]]
    return {"config_id": str(config.pk), "version_ids": ids}


def add_prompt_version(command: dict[str, Any]) -> dict[str, Any]:
    from prompts.content.version import VersionContent
    from prompts.services import add_version

    version = add_version(
        project_id=UUID(command["project_id"]),
        config_id=UUID(command["config_id"]),
        content=VersionContent(**command["content"]),
        actor="test",
    )
    return {"id": str(version.pk)}


def activate_prompt(command: dict[str, Any]) -> dict[str, Any]:
    from prompts.services import activate_version

    activate_version(
        project_id=UUID(command["project_id"]),
        config_id=UUID(command["config_id"]),
        version_id=UUID(command["version_id"]),
        actor="test",
    )
    return {}


def set_label(command: dict[str, Any]) -> dict[str, Any]:
    from prompts import labels

    labels.set_label(
        project_id=UUID(command["project_id"]),
        config_id=UUID(command["config_id"]),
        name=command["name"],
        number=command["number"],
        actor="test",
        is_administrator=True,
    )
    return {}


def delete_prompt(command: dict[str, Any]) -> dict[str, Any]:
    from prompts.services import delete_config

    delete_config(project_id=UUID(command["project_id"]), config_id=UUID(command["config_id"]))
    return {}


def start_rollout(command: dict[str, Any]) -> dict[str, Any]:
    """Starts a rollout with one stage for each weight."""
    from rollouts.allocation import AllocationType
    from rollouts.services import NewRollout, create_rollout
    from rollouts.services import start_rollout as start
    from rollouts.states import Stage

    project_id = UUID(command["project_id"])
    rollout = NewRollout(
        config_id=UUID(command["config_id"]),
        target_version_id=UUID(command["version_id"]),
        name="test",
        allocation_type=AllocationType(command["allocation_type"]),
        stages=[Stage(weight, 0, 0) for weight in command["weights"]],
    )
    row = create_rollout(project_id=project_id, new=rollout, actor="test")
    start(project_id=project_id, rollout_id=row.pk, actor="test")
    return {"rollout_id": str(row.pk)}


def move_rollout(command: dict[str, Any]) -> dict[str, Any]:
    """Moves a rollout; `move` is start, pause, promote, roll_back or complete."""
    from rollouts import services

    move = getattr(services, f"{command['move']}_rollout")
    move(project_id=UUID(command["project_id"]), rollout_id=UUID(command["rollout_id"]), actor="test")
    return {}


def set_price(command: dict[str, Any]) -> dict[str, Any]:
    """Sets a price for one project or, without `project_id`, for all."""
    from integrations.models import ModelPrice

    owner = {"project_id": command.get("project_id"), "provider": command["provider"], "model": command["model"]}
    ModelPrice.objects.update_or_create(
        **owner,
        defaults={
            "input_cost_per_1m": command["input"],
            "output_cost_per_1m": command["output"],
            "cache_read_cost_per_1m": command.get("cache_read"),
            "cache_write_cost_per_1m": command.get("cache_write"),
            "terms": command.get("terms", {}),
        },
    )
    return {}


def _save_integration(project_id: str, given: dict[str, Any]) -> None:
    from integrations.access.credentials import store_extra, store_headers, store_secret
    from integrations.models import ProviderIntegration

    row = ProviderIntegration.objects.filter(project_id=project_id, provider=given["provider"]).first()
    row = row or ProviderIntegration(project_id=project_id, provider=given["provider"])
    row.base_url = given["base_url"]
    row.options = given.get("options", {})
    row.enabled = given.get("enabled", True)
    store_secret(row, given["api_key"])
    if secret_extra := given.get("secret_extra"):
        store_extra(row, secret_extra)
    for name in ("default_parameters", "forced_parameters", "forward_headers", "own_account"):
        setattr(row, name, given.get(name, getattr(row, name)))
    store_headers(row, given.get("extra_headers", {}))
    row.save()


COMMANDS = {
    f.__name__: f
    for f in (
        make_project,
        make_key,
        draw_key,
        make_given_key,
        revoke_key,
        save_integration,
        set_routing,
        set_price,
        make_prompt,
        add_prompt_version,
        activate_prompt,
        set_label,
        delete_prompt,
        start_rollout,
        move_rollout,
    )
}


def main() -> None:
    import django

    django.setup()
    for line in sys.stdin:
        command = json.loads(line)
        answer = COMMANDS[command.pop("do")](command)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

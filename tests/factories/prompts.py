from __future__ import annotations

from itertools import count
from typing import Any

from core.models import Project
from prompts.content.version import VersionContent
from prompts.models import PromptConfig, PromptVersion
from prompts.services import add_version, create_config
from tests.factories.core import make_project

_serial = count(1)


def make_config(project: Project | None = None, name: str | None = None, *, versions: int = 0) -> PromptConfig:
    project = project or make_project()
    config = create_config(project_id=project.pk, name=name or f"config-{next(_serial)}")
    for _ in range(versions):
        make_version(config)
    config.refresh_from_db()
    return config


def make_version(config: PromptConfig, system_prompt: str = "Be helpful.", **content: Any) -> PromptVersion:
    version = VersionContent(system_prompt=system_prompt, **content)
    return add_version(project_id=config.project_id, config_id=config.pk, content=version, actor="test")

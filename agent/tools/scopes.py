from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from agent.errors import AgentDisabledError
from core.rights.asking import right_of_tool
from core.roles import Right
from gateway.selectors import AgentSettings, agent_settings


@dataclass(frozen=True, slots=True)
class Granted:
    scopes: frozenset[str]
    rights: frozenset[Right]

    def allows(self, name: str, scope: str) -> bool:
        return scope in self.scopes and self.entitles_to(name)

    def entitles_to(self, name: str) -> bool:
        return right_of_tool(name) in self.rights


def require_agent(project_id: UUID) -> AgentSettings:
    """Raises AgentDisabledError (403) if the project has switched its agent off."""
    found = agent_settings(project_id)
    if not found.enabled:
        raise AgentDisabledError("The agent is switched off in the settings of this project.")
    return found


def granted(settings: AgentSettings, rights: frozenset[Right]) -> Granted:
    return Granted(settings.scopes, rights)

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from core.audit.entries import audited_command
from core.errors import ApplicationError
from core.management.requirements import require_project
from core.members.services import add_member, change_role
from core.models import Membership
from core.roles import Role


class Command(BaseCommand):
    help = "Give an account a role in a project. Of a member the role is changed."
    # Django's checks are about the code and import every page: most of the command's time.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--project", required=True, help="id or name of the project")
        parser.add_argument("--role", choices=Role.values, required=True)

    @audited_command
    def handle(self, *args: Any, **options: Any) -> None:
        project = require_project(options["project"])
        username, role = options["username"], Role(options["role"])
        try:
            row = _added_or_changed(project.pk, username, role)
        except ApplicationError as error:
            raise CommandError(error.message) from error
        self.stdout.write(str(row))


def _added_or_changed(project_id: UUID, username: str, role: Role) -> Membership:
    known = Membership.objects.filter(project_id=project_id, user__username=username).first()
    if known is None:
        return add_member(project_id=project_id, username=username, role=role, actor="command")
    return change_role(project_id=project_id, member_id=known.pk, role=role, is_superuser=True)

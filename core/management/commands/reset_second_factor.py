from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from core.audit.entries import audited_command
from core.sign_in.second_factor import remove


class Command(BaseCommand):
    help = "Take the second factor of an account away. Its password stays."
    # Django's checks are about the code and import every page: most of the command's time.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")

    @audited_command
    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError("There is no account of this name.")
        removed = remove(user)
        self.stdout.write("The second factor was taken away." if removed else "This account has no second factor.")

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand
from django.db.models import Count


class Command(BaseCommand):
    help = "List accounts that several identities at OpenID providers open: each may be another person's."
    # Django's checks are about the code and import every page: most of the command's time.
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        people = User.objects.annotate(identities=Count("sign_in_identities")).filter(identities__gt=1)
        for person in people.order_by("username").prefetch_related("sign_in_identities"):
            marks = ["superuser"] * person.is_superuser + ["switched off"] * (not person.is_active)
            self.stdout.write(" ".join([f"{person.username} <{person.email}>", *marks]))
            for one in person.sign_in_identities.order_by("pk"):
                last = f"{one.last_sign_in_at:%Y-%m-%d %H:%M}" if one.last_sign_in_at else "never"
                since = f"{one.created_at:%Y-%m-%d %H:%M}"
                self.stdout.write(f"  {one.provider}/{one.subject}, since {since}, last signed in {last} (UTC)")
        if not people:
            self.stdout.write("No account is opened by several identities.")

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.dateparse import parse_datetime
from tqdm import tqdm

from analytics.errors import AnalyticsQueryError
from analytics.traffic.catalogue import PriceListError
from analytics.traffic.generate import Plan, generate
from analytics.traffic.texts import OWN_TEXTS, TextFileError, read_texts
from core.errors import ApplicationError
from core.management.requirements import require_project, require_tables
from core.models import ApiKey, Project

_MAX_REQUESTS = 100_000_000
_MAX_DAYS = 365  # Requests are kept for 400 days.
_MAX_TEXT_DAYS = 90  # Texts are kept for 90 days.
_UNKNOWN_DATABASE, _UNKNOWN_TABLE = 81, 60


class Command(BaseCommand):
    help = (
        "Write a made-up history of requests into the analytics store. The same arguments with the same --until change "
        "nothing the second time; without --until every run adds a history of its own."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--requests", type=_count(_MAX_REQUESTS), required=True, help="how many")
        parser.add_argument("--project", help="id or name; may be left out when there is only one")
        parser.add_argument("--days", type=_count(_MAX_DAYS), default=90, help="how far back (default 90)")
        parser.add_argument(
            "--content-days",
            type=_count(_MAX_TEXT_DAYS, min_value=0),
            default=30,
            help="how many of the newest days have texts; they are most of the work and of the disk (default 30)",
        )
        parser.add_argument("--until", type=_moment, help="ISO 8601; when the history ends (default now)")
        parser.add_argument("--texts", type=Path, default=OWN_TEXTS, help="JSONL of conversations (default our own)")
        parser.add_argument("--seed", type=_count(2**63, min_value=0), default=1, help="the seed of all random choices")

    def handle(self, *args: Any, **options: Any) -> None:
        require_tables()
        project = _project(options["project"])
        until = options["until"] or datetime.now(UTC).replace(second=0, microsecond=0)
        plan = Plan(
            project=project.pk,
            requests=options["requests"],
            end=until,
            days=options["days"],
            text_days=min(options["content_days"], options["days"]),
            seed=options["seed"],
            api_keys=tuple(ApiKey.objects.filter(project=project).order_by("pk").values_list("pk", flat=True)) or (0,),
        )
        with tqdm(total=plan.requests, unit=" requests", unit_scale=True, disable=options["verbosity"] == 0) as bar:
            try:
                generate(plan, read_texts(options["texts"]), written=bar.update)
            except (TextFileError, PriceListError) as error:
                raise CommandError(str(error)) from error
            except AnalyticsQueryError as error:
                raise CommandError(_explained(error)) from error
            except ApplicationError as error:
                raise CommandError(error.message) from error
        self.stdout.write(f"{plan.requests} requests of {project.name} until {until.isoformat()} (seed {plan.seed})")


def _count(max_value: int, *, min_value: int = 1) -> Any:
    def number(text: str) -> int:
        try:
            value = int(text.replace("_", ""))
        except ValueError:
            value = min_value - 1
        if not min_value <= value <= max_value:
            raise ArgumentTypeError(f"{text!r} is not a whole number from {min_value} to {max_value}")
        return value

    return number


def _moment(text: str) -> datetime:
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise ArgumentTypeError(f"{text!r} is not an ISO 8601 time")
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    if not datetime(2000, 1, 1, tzinfo=UTC) < found <= datetime.now(UTC):
        raise ArgumentTypeError(f"{text!r} is not a time in the past")
    return found


def _project(named: str | None) -> Project:
    if named is not None:
        return require_project(named)
    projects = list(Project.objects.all()[:2])
    if not projects:
        raise CommandError("There is no project yet: create one with `manage.py bootstrap`.")
    if len(projects) > 1:
        raise CommandError("There are several projects: say which one with --project.")
    return projects[0]


def _explained(error: AnalyticsQueryError) -> str:
    if error.server_code in (_UNKNOWN_DATABASE, _UNKNOWN_TABLE):
        return "The analytics store has no tables yet: run `manage.py migrate_analytics`, or start `manage.py serve`."
    return f"{error.message} {error.reason}"

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from core.audit.entries import audited_command
from core.errors import ApplicationError
from core.management.requirements import require_tables
from rollouts.evaluation import UnknownFormulaError
from rollouts.models import Rollout
from rollouts.verdicts.evaluate import EvaluationResult, evaluate_rollout, evaluate_running_rollouts


class Command(BaseCommand):
    help = "Evaluate running rollouts over the minutes that closed since the last look, and move those in mode auto."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--rollout", type=UUID, help="id of one rollout; all running ones without it")
        parser.add_argument("--dry-run", action="store_true", help="say what would happen, and store nothing")

    @audited_command
    def handle(self, *args: Any, **options: Any) -> None:
        require_tables()
        found = self._evaluated(options["rollout"], options["dry_run"])
        for judgement in found:
            self.stdout.write(_line(judgement, dry_run=options["dry_run"]))
        if not found:
            self.stdout.write("Nothing to evaluate: no running rollout has a minute that closed since the last look.")

    def _evaluated(self, rollout_id: UUID | None, dry_run: bool) -> list[EvaluationResult]:
        if rollout_id is None:
            return evaluate_running_rollouts(dry_run=dry_run)
        if not Rollout.objects.filter(pk=rollout_id).exists():
            raise CommandError(f"There is no rollout {rollout_id}.")
        try:
            judgement = evaluate_rollout(rollout_id, dry_run=dry_run)
        except (ApplicationError, UnknownFormulaError) as error:
            raise CommandError(str(error)) from error
        return [judgement] if judgement else []


def _line(judgement: EvaluationResult, *, dry_run: bool) -> str:
    verdict = judgement.verdict
    done = "stays" if judgement.moved is None else judgement.moved.value.replace("_", " ")
    if dry_run and judgement.moved is not None:
        done = f"would {done}"
    return (
        f"{judgement.rollout_id} {judgement.name!r} stage {judgement.stage} until {judgement.through:%Y-%m-%d %H:%M}"
        f" ({judgement.new_minutes} new): {verdict.assessment.status.value}, {done}. {verdict.explanation}"
    )

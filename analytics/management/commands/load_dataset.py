from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from analytics.datasets.selectors import list_datasets
from analytics.datasets.services import add_file, create_dataset
from analytics.models.datasets import DATASET_NAME_CHARACTERS
from core.errors import ApplicationError
from core.management.requirements import require_project

_ACTOR = "command:load_dataset"
_LINES_BETWEEN = 1_000


class Command(BaseCommand):
    help = "Add the items of a file of JSON lines to a data set, all as one version, or none."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="file with one item a line, as the export of a data set has them")
        parser.add_argument("--project", required=True, help="id or name of the project")
        parser.add_argument("--dataset", required=True, help="name of the data set, which is made if there is none")

    def handle(self, *args: Any, **options: Any) -> None:
        project_id, name = require_project(options["project"]).pk, options["dataset"]
        try:
            # Nothing is left of a set that was made for a file that is wrong.
            with options["file"].open("rb") as file, transaction.atomic():
                row = list_datasets(project_id).filter(name=name).first()
                if row is None:
                    row = create_dataset(project_id=project_id, name=name[:DATASET_NAME_CHARACTERS], actor=_ACTOR)
                added = add_file(project_id=project_id, dataset_id=row.pk, file=file, actor=_ACTOR, progress=self._tell)
        except (ApplicationError, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{added.items} items are new in {row.name}, version {added.dataset.version}.")

    def _tell(self, lines: int) -> None:
        if lines % _LINES_BETWEEN == 0:
            self.stderr.write(f"{lines} lines")

"""A row of each kind that an endpoint names by its id."""

from __future__ import annotations

import pytest

from analytics.models import Evaluator, EvaluatorVersion
from core.models import Project
from tests.analytics.contract.endpoints import EVALUATOR, SESSION


@pytest.fixture(autouse=True)
def evaluator(project: Project) -> None:
    row = Evaluator.objects.create(pk=EVALUATOR, project=project, name="has a word", kind="contains")
    EvaluatorVersion.objects.create(evaluator=row, number=1, definition={"value": SESSION})

from __future__ import annotations

import pytest
from django.test import Client

from analytics.models import OnlineEvaluation
from core.models import Project
from tests.console.conftest import shown, text_of
from tests.console.online_evaluations.test_online_evaluations import page, send
from tests.factories.evaluators import make_evaluator
from tests.factories.online_evaluations import make_label_task, make_labelled_evaluation


def test_share__in_per_cent__is_kept_and_taken_away(editor: Client, project: Project) -> None:
    row = make_labelled_evaluation(make_evaluator(project), label_share=0.2)
    assert 'name="label_share" value="20"' in shown(editor, project, page(row))

    for given, share in (("5", 0.05), ("", None), ("0", None)):
        assert send(editor, project, page(row), rate="100", matched="on", label_share=given).status_code == 302
        assert OnlineEvaluation.objects.get().label_share == (None if share is None else pytest.approx(share))
    assert "label_share" in text_of(send(editor, project, page(row), rate="100", label_share="101"))


def test_page__says_what_became_of_the_labels_and_where_to_give_more(editor: Client, project: Project) -> None:
    row = make_labelled_evaluation(make_evaluator(project))
    make_label_task(row, state="failed", score=None)
    make_label_task(row)

    content = shown(editor, project, page(row))

    assert "Labels of people" in content and "<dt>To be labelled</dt><dd>2</dd>" in content
    assert "<dt>Due</dt><dd>1</dd><dt>Given</dt><dd>0</dd><dt>Missing</dt><dd>1</dd>" in content
    assert "Label 20 more" in content
    OnlineEvaluation.objects.filter(pk=row.pk).update(label_share=None)
    row.tasks.all().delete()
    assert "Labels of people" not in shown(editor, project, page(row))

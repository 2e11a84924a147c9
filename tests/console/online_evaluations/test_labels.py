from __future__ import annotations

from decimal import Decimal

import pytest
from django.test import Client

from analytics.models import OnlineEvaluation
from core.models import Project
from tests.console.conftest import shown, text_of
from tests.console.online_evaluations.test_online_evaluations import LIST, RUBRIC, page, send
from tests.factories.evaluators import make_evaluator
from tests.factories.online_evaluations import make_label_task, make_labelled_evaluation, make_online_evaluation


def test_share__in_per_cent__is_kept_and_taken_away(editor: Client, project: Project) -> None:
    judge = make_evaluator(project, "judge", **RUBRIC)
    row = make_labelled_evaluation(judge, label_share=0.2, monthly_budget_usd=Decimal(10))
    assert 'name="label_share" value="20"' in shown(editor, project, page(row))

    for given, share in (("5", 0.05), ("", None), ("0", None)):
        body = {"rate": "100", "matched": "on", "monthly_budget_usd": "10", "label_share": given}
        assert send(editor, project, page(row), **body).status_code == 302
        assert OnlineEvaluation.objects.get().label_share == (None if share is None else pytest.approx(share))
    assert "label_share" in text_of(send(editor, project, page(row), rate="100", label_share="101"))


def test_share__of_a_rule__is_not_offered(editor: Client, project: Project) -> None:
    rule = make_evaluator(project)
    assert 'name="label_share"' not in shown(editor, project, page(make_online_evaluation(rule)))

    refused = send(editor, project, LIST, evaluator_id=str(rule.pk), rate="100", matched="on", label_share="20")
    assert "A rule is right by definition and learns nothing from labels." in text_of(refused)
    assert send(editor, project, LIST, evaluator_id=str(rule.pk), rate="100", matched="on").status_code == 302
    assert set(OnlineEvaluation.objects.values_list("label_share", flat=True)) == {None}


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

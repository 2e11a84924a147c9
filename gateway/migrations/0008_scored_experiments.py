"""Experiments over data sets, with evaluators, repeats and a verdict."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("gateway", "0007_experiments"),
    ]

    operations = [
        migrations.CreateModel(
            name="ExperimentScore",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("evaluator", models.PositiveSmallIntegerField()),
                ("value", models.FloatField(null=True)),
                ("reason", models.CharField(blank=True, default="", max_length=200)),
                ("detail", models.TextField(blank=True, default="")),
                ("cost_usd", models.DecimalField(decimal_places=10, max_digits=20, null=True)),
                ("request_ids", models.JSONField(default=list)),
                ("key", models.CharField(blank=True, default="", max_length=64)),
                ("reused", models.BooleanField(default=False)),
                ("scored_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "ordering": ["answer_id", "evaluator"],
            },
        ),
        migrations.AlterModelOptions(
            name="experimentanswer",
            options={"ordering": ["item_id", "candidate", "repeat"]},
        ),
        migrations.RemoveConstraint(
            model_name="experimentanswer",
            name="one_experiment_answer_per_candidate",
        ),
        migrations.AddField(
            model_name="experiment",
            name="baseline",
            field=models.CharField(blank=True, db_default="", default="", max_length=1),
        ),
        migrations.AddField(
            model_name="experiment",
            name="dataset_id",
            field=models.UUIDField(null=True),
        ),
        migrations.AddField(
            model_name="experiment",
            name="dataset_name",
            field=models.CharField(blank=True, db_default="", default="", max_length=100),
        ),
        migrations.AddField(
            model_name="experiment",
            name="dataset_version",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="experiment",
            name="erased_items",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="experiment",
            name="evaluators",
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name="experiment",
            name="expired_items",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="experiment",
            name="failure_code",
            field=models.CharField(
                blank=True,
                choices=[("budget", "Budget"), ("provider", "Provider"), ("timeout", "Timeout")],
                db_default="",
                default="",
                max_length=20,
            ),
        ),
        migrations.AddField(
            model_name="experiment",
            name="margin",
            field=models.FloatField(db_default=0.1, default=0.1),
        ),
        migrations.AddField(
            model_name="experiment",
            name="max_cost_usd",
            field=models.DecimalField(decimal_places=10, max_digits=20, null=True),
        ),
        migrations.AddField(
            model_name="experiment",
            name="repeats",
            field=models.PositiveSmallIntegerField(db_default=1, default=1),
        ),
        migrations.AddField(
            model_name="experiment",
            name="report",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="experiment",
            name="reserved_usd",
            field=models.DecimalField(db_default=0, decimal_places=10, default=0, max_digits=20),
        ),
        migrations.AddField(
            model_name="experiment",
            name="reuse",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.AddField(
            model_name="experiment",
            name="spent_usd",
            field=models.DecimalField(db_default=0, decimal_places=10, default=0, max_digits=20),
        ),
        migrations.AddField(
            model_name="experiment",
            name="stopped_early",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="experiment",
            name="verdict",
            field=models.CharField(
                blank=True,
                choices=[("passed", "Passed"), ("worse", "Worse"), ("undecided", "Undecided")],
                db_default="",
                default="",
                max_length=9,
            ),
        ),
        migrations.AddField(
            model_name="experiment",
            name="verdicts",
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name="experimentanswer",
            name="key",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="experimentanswer",
            name="repeat",
            field=models.PositiveSmallIntegerField(db_default=1, default=1),
        ),
        migrations.AddField(
            model_name="experimentanswer",
            name="reused",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="experimentitem",
            name="dataset_item_id",
            field=models.UUIDField(null=True),
        ),
        migrations.AddField(
            model_name="experimentitem",
            name="request_hash",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="experimentitem",
            name="session_hash",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="experimentitem",
            name="tags",
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AlterField(
            model_name="experimentanswer",
            name="state",
            field=models.CharField(
                choices=[
                    ("pending", "Pending"),
                    ("running", "Running"),
                    ("answered", "Answered"),
                    ("scoring", "Scoring"),
                    ("done", "Done"),
                    ("cancelled", "Cancelled"),
                ],
                default="pending",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="experimentitem",
            name="request_id",
            field=models.UUIDField(null=True),
        ),
        migrations.AlterField(
            model_name="experimentitem",
            name="requested_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddIndex(
            model_name="experiment",
            index=models.Index(fields=["dataset_id", "-created_at"], name="experiments_of_dataset"),
        ),
        migrations.AddIndex(
            model_name="experimentanswer",
            index=models.Index(
                condition=models.Q(("key", ""), _negated=True), fields=["key"], name="experiment_answer_by_key"
            ),
        ),
        migrations.AddIndex(
            model_name="experimentitem",
            index=models.Index(
                condition=models.Q(("request_hash", ""), _negated=True),
                fields=["request_hash"],
                name="experiment_item_by_request",
            ),
        ),
        migrations.AddIndex(
            model_name="experimentitem",
            index=models.Index(
                condition=models.Q(("session_hash", ""), _negated=True),
                fields=["session_hash"],
                name="experiment_item_by_session",
            ),
        ),
        migrations.AddIndex(
            model_name="experimentitem",
            index=models.Index(
                condition=models.Q(("dataset_item_id__isnull", False)),
                fields=["dataset_item_id"],
                name="experiment_item_by_dataset",
            ),
        ),
        migrations.AddConstraint(
            model_name="experimentanswer",
            constraint=models.UniqueConstraint(
                fields=("item", "candidate", "repeat"), name="one_experiment_answer_per_repeat"
            ),
        ),
        migrations.AddConstraint(
            model_name="experimentanswer",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "running"), models.Q(("key", ""), _negated=True)),
                fields=("key",),
                name="one_running_answer_per_key",
            ),
        ),
        migrations.AddField(
            model_name="experimentscore",
            name="answer",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="scores", to="gateway.experimentanswer"
            ),
        ),
        migrations.AddIndex(
            model_name="experimentscore",
            index=models.Index(
                condition=models.Q(("key", ""), _negated=True), fields=["key"], name="experiment_score_by_key"
            ),
        ),
        migrations.AddConstraint(
            model_name="experimentscore",
            constraint=models.UniqueConstraint(
                fields=("answer", "evaluator"), name="one_experiment_score_per_evaluator"
            ),
        ),
    ]

import uuid

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("analytics", "0009_feedback_on_requests"),
        ("core", "0004_fleet"),
    ]

    operations = [
        migrations.CreateModel(
            name="EvaluationBudget",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("month", models.DateField()),
                ("budget_usd", models.DecimalField(decimal_places=10, max_digits=20)),
                ("spent_usd", models.DecimalField(decimal_places=10, default=0, max_digits=20)),
                ("reserved_usd", models.DecimalField(decimal_places=10, default=0, max_digits=20)),
                ("spent_out_at", models.DateTimeField(null=True)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="OnlineEvaluation",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("filter", models.JSONField(default=dict)),
                ("rate", models.FloatField()),
                ("matched", models.BooleanField(default=False)),
                ("monthly_budget_usd", models.DecimalField(decimal_places=10, max_digits=20, null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[("active", "Active"), ("paused", "Paused"), ("deleted", "Deleted")],
                        default="active",
                        max_length=7,
                    ),
                ),
                ("created_by", models.CharField(blank=True, default="", max_length=200)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("active_since", models.DateTimeField(default=django.utils.timezone.now)),
                ("sampled_until", models.DateTimeField()),
                (
                    "evaluator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="online_evaluations",
                        to="analytics.evaluator",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="online_evaluations",
                        to="core.project",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="analytics.evaluatorversion",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-id"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="EvaluationTask",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("request_id", models.UUIDField()),
                ("requested_at", models.DateTimeField()),
                ("prompt_config_id", models.UUIDField(null=True)),
                ("prompt_version", models.PositiveIntegerField(default=0)),
                ("rollout_id", models.UUIDField(null=True)),
                ("rollout_stage", models.PositiveSmallIntegerField(default=0)),
                ("variant", models.CharField(blank=True, default="", max_length=20)),
                ("due_at", models.DateTimeField()),
                ("position", models.BigIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[("due", "Due"), ("done", "Done"), ("failed", "Failed"), ("skipped", "Skipped")],
                        default="due",
                        max_length=7,
                    ),
                ),
                ("reason", models.CharField(blank=True, default="", max_length=50)),
                ("score", models.FloatField(null=True)),
                ("judge_model", models.CharField(blank=True, default="", max_length=200)),
                ("cost_usd", models.DecimalField(decimal_places=10, default=0, max_digits=20)),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("ended_at", models.DateTimeField(null=True)),
                ("not_before", models.DateTimeField(null=True)),
                ("claim", models.UUIDField(null=True)),
                ("claimed_until", models.DateTimeField(null=True)),
                ("reserved_usd", models.DecimalField(decimal_places=10, default=0, max_digits=20)),
                (
                    "project",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="core.project"),
                ),
                (
                    "reserved_in",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="analytics.evaluationbudget",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="analytics.evaluatorversion"
                    ),
                ),
                (
                    "evaluation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tasks",
                        to="analytics.onlineevaluation",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.AddField(
            model_name="evaluationbudget",
            name="evaluation",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="budgets", to="analytics.onlineevaluation"
            ),
        ),
        migrations.AddIndex(
            model_name="onlineevaluation",
            index=models.Index(fields=["project", "-created_at"], name="online_evaluations_of_project"),
        ),
        migrations.AddIndex(
            model_name="evaluationtask",
            index=models.Index(
                condition=models.Q(("state", "due")), fields=["due_at", "position"], name="evaluation_tasks_due"
            ),
        ),
        migrations.AddIndex(
            model_name="evaluationtask",
            index=models.Index(
                condition=models.Q(("claim__isnull", False)), fields=["claim"], name="evaluation_tasks_claimed"
            ),
        ),
        migrations.AddIndex(
            model_name="evaluationtask",
            index=models.Index(fields=["evaluation", "state", "reason"], name="evaluation_tasks_by_end"),
        ),
        migrations.AddIndex(
            model_name="evaluationtask",
            index=models.Index(fields=["evaluation", "ended_at"], name="evaluation_tasks_by_time"),
        ),
        migrations.AddIndex(
            model_name="evaluationtask",
            index=models.Index(fields=["project", "request_id"], name="evaluation_tasks_of_request"),
        ),
        migrations.AddIndex(
            model_name="evaluationtask",
            index=models.Index(fields=["project", "requested_at"], name="evaluation_tasks_by_request"),
        ),
        migrations.AddIndex(
            model_name="evaluationtask",
            index=models.Index(
                condition=models.Q(("rollout_id__isnull", False)),
                fields=["rollout_id", "due_at"],
                name="evaluation_tasks_of_rollout",
            ),
        ),
        migrations.AddConstraint(
            model_name="evaluationtask",
            constraint=models.UniqueConstraint(
                fields=("evaluation", "request_id"), name="one_evaluation_task_per_request"
            ),
        ),
        migrations.AddConstraint(
            model_name="evaluationbudget",
            constraint=models.UniqueConstraint(fields=("evaluation", "month"), name="one_evaluation_budget_per_month"),
        ),
    ]

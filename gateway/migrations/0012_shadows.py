"""Shadows of rollouts: experiments whose items come from live traffic."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("gateway", "0011_done_answers")]

    operations = [
        migrations.AddField("Experiment", "rollout_id", models.UUIDField(null=True)),
        migrations.AddConstraint(
            "Experiment",
            models.UniqueConstraint(
                fields=["rollout_id"], condition=Q(rollout_id__isnull=False), name="one_shadow_per_rollout"
            ),
        ),
        migrations.CreateModel(
            "Shadow",
            [
                (
                    "experiment",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="shadow",
                        serialize=False,
                        to="gateway.experiment",
                    ),
                ),
                ("prompt_config_id", models.UUIDField()),
                ("baseline_number", models.PositiveIntegerField()),
                ("rate", models.FloatField()),
                ("since", models.DateTimeField()),
                ("followed_until", models.DateTimeField()),
                ("taken", models.PositiveIntegerField(default=0)),
                ("skipped", models.JSONField(default=dict)),
            ],
            options={"ordering": ["experiment_id"]},
        ),
    ]

import uuid

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("analytics", "0002_scores_and_feedback"),
        ("core", "0001_projects_and_keys"),
    ]

    operations = [
        migrations.CreateModel(
            name="RepairLease",
            fields=[
                ("project_id", models.UUIDField(primary_key=True, serialize=False)),
                ("holder", models.UUIDField(null=True)),
                ("expires_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Deletion",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("kind", models.CharField(choices=[("session", "Session"), ("request", "Request")], max_length=8)),
                ("subject", models.CharField(blank=True, max_length=1024)),
                ("subject_hash", models.CharField(max_length=64)),
                ("requested_by", models.CharField(max_length=200)),
                ("requested_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "state",
                    models.CharField(
                        choices=[("pending", "Pending"), ("erased", "Erased"), ("closed", "Closed")],
                        default="pending",
                        max_length=8,
                    ),
                ),
                ("requests", models.PositiveIntegerField(default=0)),
                ("looks", models.PositiveIntegerField(default=0)),
                ("look_at", models.DateTimeField(default=django.utils.timezone.now, null=True)),
                ("erased_at", models.DateTimeField(null=True)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="deletions", to="core.project"
                    ),
                ),
            ],
            options={
                "ordering": ["-requested_at", "-id"],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="DeletionBatch",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("plan", models.JSONField()),
                (
                    "deletion",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="batches", to="analytics.deletion"
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.AddIndex(
            model_name="deletion",
            index=models.Index(
                condition=models.Q(("look_at__isnull", False)), fields=["look_at"], name="deletion_to_look_at"
            ),
        ),
    ]

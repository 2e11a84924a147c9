from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [
        ("analytics", "0011_label_queues"),
    ]

    operations = [
        migrations.AddField("score", "evaluator_version_id", models.UUIDField(editable=False, null=True)),
        migrations.AddIndex(
            "score",
            models.Index(
                fields=["project", "evaluator_version_id", "-created_at"],
                condition=Q(("evaluator_version_id__isnull", False)),
                name="score_by_evaluator_version",
            ),
        ),
    ]

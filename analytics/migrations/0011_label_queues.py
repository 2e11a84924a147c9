from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [
        ("analytics", "0010_online_evaluations"),
    ]

    operations = [
        migrations.AddField("onlineevaluation", "label_share", models.FloatField(null=True)),
        migrations.AddField("evaluationtask", "label_due", models.BooleanField(db_default=False, default=False)),
        migrations.AddField("evaluationtask", "label_share", models.FloatField(null=True)),
        migrations.AddField("evaluationtask", "label", models.FloatField(null=True)),
        migrations.AddField("evaluationtask", "labelled_at", models.DateTimeField(null=True)),
        migrations.AddIndex(
            "evaluationtask",
            models.Index(
                fields=["project", "due_at"],
                condition=Q(("label_due", True), ("labelled_at__isnull", True)),
                name="evaluation_tasks_to_label",
            ),
        ),
        migrations.AddIndex(
            "evaluationtask",
            models.Index(
                fields=["rollout_id", "labelled_at"],
                condition=Q(("labelled_at__isnull", False), ("rollout_id__isnull", False)),
                name="evaluation_tasks_labelled",
            ),
        ),
        migrations.AddField("reviewqueue", "due_labels", models.BooleanField(db_default=False, default=False)),
        migrations.AddField("reviewitem", "opinion", models.PositiveSmallIntegerField(db_default=1, default=1)),
        migrations.AddField(
            "reviewitem", "arm", models.CharField(blank=True, db_default="", default="", max_length=60)
        ),
        migrations.AddField("reviewitem", "counts_until", models.DateTimeField(null=True)),
        migrations.AddConstraint(
            "reviewitem",
            models.UniqueConstraint(fields=("queue", "request_id", "opinion"), name="one_review_item_per_opinion"),
        ),
        migrations.RemoveConstraint("reviewitem", "one_review_item_per_request"),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    """Both columns may be left out of an INSERT, as a process of the version before does."""

    dependencies = [("analytics", "0008_deletion_references")]

    operations = [
        migrations.AddField("Feedback", "request_id", models.UUIDField(editable=False, null=True)),
        migrations.AddField(
            "Feedback",
            "request_hash",
            models.CharField(blank=True, db_default="", default="", editable=False, max_length=64),
        ),
        migrations.AddIndex(
            "Feedback",
            models.Index(
                condition=models.Q(("request_hash", ""), _negated=True),
                fields=["project", "request_hash"],
                name="feedback_by_request",
            ),
        ),
        # Feedback on a request that was deleted is refused, so that each one asks for deletions of its subject.
        migrations.AddIndex(
            "Deletion", models.Index(fields=["project", "subject_hash"], name="deletion_by_subject")
        ),
    ]

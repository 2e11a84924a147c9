from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """The column may be left out of an INSERT, as a process of the version before does."""

    dependencies = [("analytics", "0013_evaluator_version_of_scores")]

    operations = [
        migrations.AddField("Feedback", "edited", models.BooleanField(db_default=False, default=False)),
        migrations.RemoveConstraint("Feedback", "feedback_says_something"),
        migrations.AddConstraint(
            "Feedback",
            models.CheckConstraint(
                condition=Q(("score__isnull", False), Q(("text", ""), _negated=True), ("edited", True), _connector="OR"),
                name="feedback_says_something",
            ),
        ),
    ]

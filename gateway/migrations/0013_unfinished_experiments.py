"""The experiments that workers look for every few seconds, among all that are kept."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("gateway", "0012_shadows")]

    operations = [
        migrations.AddIndex(
            "Experiment",
            models.Index(
                fields=["claimed_until", "created_at"],
                condition=Q(state__in=("pending", "running")),
                name="experiments_unfinished",
            ),
        ),
    ]

"""A rollout may ask for a shadow before it begins."""

from django.db import migrations, models

_KINDS = [("none", "None"), ("experiment", "Experiment"), ("shadow", "Shadow")]


class Migration(migrations.Migration):
    dependencies = [("rollouts", "0006_quality")]

    operations = [
        migrations.AlterField(
            "Rollout", "gate", models.CharField(choices=_KINDS, db_default="none", default="none", max_length=10)
        ),
    ]

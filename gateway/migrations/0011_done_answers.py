"""An experiment that has ended keeps the number of its answers."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("gateway", "0010_gone_experiment_items")]

    operations = [
        migrations.AddField("Experiment", "done_answers", models.PositiveIntegerField(null=True)),
    ]

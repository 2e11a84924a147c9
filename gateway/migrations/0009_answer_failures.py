"""Why an answer of an experiment failed, as far as its scores depend on it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("gateway", "0008_scored_experiments")]

    operations = [
        migrations.AddField(
            model_name="experimentanswer",
            name="failure",
            field=models.CharField(
                blank=True,
                choices=[("refused", "Refused"), ("passing", "Passing"), ("unusable", "Unusable")],
                db_default="",
                default="",
                max_length=8,
            ),
        ),
    ]

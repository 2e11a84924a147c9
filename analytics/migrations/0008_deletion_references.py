import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("analytics", "0007_calibration")]

    operations = [
        migrations.AlterField(
            "Deletion",
            "kind",
            models.CharField(choices=[("session", "Session"), ("request", "Request"), ("item", "Item")], max_length=8),
        ),
        migrations.CreateModel(
            name="DeletionReference",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("reference", models.CharField(max_length=64)),
                ("since", models.DateTimeField()),
                ("searched_at", models.DateTimeField(null=True)),
                (
                    "deletion",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="references",
                        to="analytics.deletion",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("deletion", "reference"), name="one_reference_per_deletion")
                ],
            },
        ),
    ]

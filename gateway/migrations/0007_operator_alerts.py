from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("gateway", "0006_rights_without_permissions")]

    operations = [
        migrations.CreateModel(
            name="OperatorAlert",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=40)),
                ("subject", models.CharField(blank=True, default="", max_length=100)),
                ("host", models.CharField(blank=True, default="", max_length=255)),
                ("text", models.TextField()),
                ("raised_at", models.DateTimeField()),
                ("over_at", models.DateTimeField(blank=True, null=True)),
                ("told", models.JSONField(default=dict)),
            ],
            options={"ordering": ["-id"]},
        ),
        migrations.AddConstraint(
            model_name="operatoralert",
            constraint=models.UniqueConstraint(
                condition=models.Q(("over_at__isnull", True)),
                fields=("kind", "subject", "host"),
                name="operator_alert_open_once",
            ),
        ),
    ]

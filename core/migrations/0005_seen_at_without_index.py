from django.db import migrations, models


class Migration(migrations.Migration):
    """The table has one row a host and is always read as a whole, while each report would write the index anew."""

    dependencies = [("core", "0004_fleet")]

    operations = [
        migrations.AlterField(model_name="host", name="seen_at", field=models.DateTimeField()),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("analytics", "0014_edited_answers"),
    ]

    operations = [
        migrations.AddField("evaluationtask", "is_erased", models.BooleanField(db_default=False, default=False)),
    ]

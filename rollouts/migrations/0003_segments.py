from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('rollouts', '0002_settle_minutes'),
    ]

    operations = [
        migrations.AddField(
            model_name='rolloutevaluation',
            name='segments',
            field=models.JSONField(null=True),
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('rollouts', '0004_watch'),
    ]

    operations = [
        migrations.AddField(
            model_name='rollout',
            name='gate',
            field=models.CharField(choices=[('none', 'None'), ('experiment', 'Experiment')], db_default='none', default='none', max_length=10),
        ),
        migrations.AddField(
            model_name='rollout',
            name='gate_dataset_id',
            field=models.UUIDField(null=True),
        ),
    ]

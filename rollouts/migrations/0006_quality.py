import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('rollouts', '0005_gate'),
    ]

    operations = [
        migrations.CreateModel(
            name='RolloutQuality',
            fields=[
                ('rollout', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='quality_evaluation', serialize=False, to='rollouts.rollout')),
                ('evaluators', models.JSONField(default=list)),
                ('initial', models.JSONField(null=True)),
                ('state', models.JSONField(null=True)),
                ('through', models.JSONField(default=dict)),
                ('users', models.JSONField(null=True)),
                ('calibrated_at', models.JSONField(default=dict)),
            ],
            options={
                'ordering': ['rollout_id'],
                'default_permissions': (),
            },
        ),
        migrations.AddField(
            model_name='rollout',
            name='quality',
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.CreateModel(
            name='RolloutQualityMinute',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('basis', models.CharField(max_length=6)),
                ('minute', models.DateTimeField()),
                ('stage', models.PositiveSmallIntegerField()),
                ('tasks', models.JSONField()),
                ('rollout', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='quality_minutes', to='rollouts.rollout')),
            ],
            options={
                'ordering': ['rollout_id', 'basis', 'minute', 'stage'],
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('rollout', 'basis', 'minute', 'stage'), name='one_rollout_quality_minute')],
            },
        ),
    ]

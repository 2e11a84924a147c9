from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('integrations', '0004_connection_tests'),
    ]

    operations = [
        migrations.AddField(
            model_name='providerintegration',
            name='default_parameters',
            field=models.JSONField(blank=True, default=dict, db_default={}),
        ),
        migrations.AddField(
            model_name='providerintegration',
            name='forced_parameters',
            field=models.JSONField(blank=True, default=dict, db_default={}),
        ),
        migrations.AddField(
            model_name='providerintegration',
            name='encrypted_headers',
            field=models.TextField(blank=True, default='', db_default='', editable=False),
        ),
        migrations.AddField(
            model_name='providerintegration',
            name='forward_headers',
            field=models.JSONField(blank=True, null=True),
        ),
    ]

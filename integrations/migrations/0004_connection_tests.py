from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('integrations', '0003_open_price_periods'),
    ]

    operations = [
        migrations.AddField(
            model_name='providerintegration',
            name='last_tested_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='providerintegration',
            name='last_test_ok',
            field=models.BooleanField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name='providerintegration',
            name='last_test_reason',
            field=models.CharField(blank=True, default='', editable=False, max_length=30),
        ),
    ]

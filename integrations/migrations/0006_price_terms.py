from django.db import migrations, models

# The column has a default of the database's: processes of the release before write rows without it.
_TERMS = {"name": "terms", "field": models.JSONField(blank=True, db_default={}, default=dict)}


class Migration(migrations.Migration):

    dependencies = [
        ('integrations', '0005_request_additions'),
    ]

    operations = [
        migrations.AddField(model_name='catalogprice', **_TERMS),
        migrations.AddField(model_name='modelprice', **_TERMS),
        migrations.AddField(model_name='priceperiod', **_TERMS),
    ]

from django.db import migrations, models

# The column has a default in the database, since processes of the previous release write rows without it.
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

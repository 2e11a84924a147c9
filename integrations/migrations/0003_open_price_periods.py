"""Makes every existing price the first period of its history, and the last price of its catalog."""

from django.db import migrations

COSTS = ['input_cost_per_1m', 'output_cost_per_1m', 'cache_read_cost_per_1m', 'cache_write_cost_per_1m']
BATCH = 500


def open_periods(apps, schema_editor):
    price, period, catalog_price = (
        apps.get_model('integrations', name) for name in ('ModelPrice', 'PricePeriod', 'CatalogPrice')
    )
    prices = list(price.objects.all())
    period.objects.bulk_create(
        [
            period(
                provider=row.provider,
                model=row.model,
                source=row.source,
                valid_from=row.updated_at,
                changed_by='unknown',
                **{name: getattr(row, name) for name in COSTS},
            )
            for row in prices
        ],
        batch_size=BATCH,
        ignore_conflicts=True,
    )
    catalog_price.objects.bulk_create(
        [
            catalog_price(
                provider=row.provider,
                model=row.model,
                source=row.source,
                **{name: getattr(row, name) for name in COSTS},
            )
            for row in prices
            if row.source != 'manual'
        ],
        batch_size=BATCH,
        ignore_conflicts=True,
    )


class Migration(migrations.Migration):

    dependencies = [
        ('integrations', '0002_price_periods'),
    ]

    operations = [
        migrations.RunPython(open_periods, migrations.RunPython.noop),
    ]

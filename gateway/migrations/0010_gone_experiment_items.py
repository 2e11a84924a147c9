"""Items of experiments know when their texts are deleted, and are found by the hash of their request."""

import hashlib

from django.db import migrations, models

ROWS_AT_ONCE = 1_000


def fill_hashes(apps, schema_editor):
    """Gives the items that were made before there were hashes that of their request. Their session is known by the
    request log, whose requests a deletion of the session names one by one."""
    rows = apps.get_model("gateway", "ExperimentItem").objects.filter(request_hash="", request_id__isnull=False)
    last = 0
    while some := list(rows.filter(pk__gt=last).order_by("pk").only("pk", "request_id")[:ROWS_AT_ONCE]):
        for row in some:
            row.request_hash = hashlib.sha256(str(row.request_id).encode()).hexdigest()
        rows.model.objects.bulk_update(some, ["request_hash"], batch_size=200)
        last = some[-1].pk


class Migration(migrations.Migration):
    dependencies = [("gateway", "0009_answer_failures")]

    operations = [
        migrations.AddField(
            model_name="experimentitem",
            name="gone",
            field=models.CharField(
                blank=True,
                choices=[("erased", "Erased"), ("expired", "Expired")],
                db_default="",
                default="",
                max_length=7,
            ),
        ),
        migrations.RunPython(fill_hashes, migrations.RunPython.noop, elidable=True),
    ]

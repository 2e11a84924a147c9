from django.db import migrations

import prompts.fields


class Migration(migrations.Migration):
    dependencies = [("prompts", "0002_labels")]

    operations = [
        migrations.AddField(
            model_name="promptversion",
            name="messages",
            field=prompts.fields.OrderedJSONField(db_default=[], default=list),
        ),
    ]

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('gateway', '0002_settings_as_values'),
    ]

    operations = [
        migrations.RenameField('operatoralert', 'told', 'outcomes'),
    ]

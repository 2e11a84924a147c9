from decimal import Decimal

from django.db import migrations, models

SETTINGS = [
    'introspection_enabled', 'thinking_budget_tokens', 'fallback_enabled', 'fallback_order', 'preferred_models',
    'retry_enabled', 'retry_max_attempts', 'rate_limit_enabled', 'rate_limit_rpm', 'rate_limit_tpm',
    'monthly_budget_usd', 'budget_alert_enabled', 'budget_hard_stop', 'session_budget_usd',
    'end_user_monthly_budget_usd', 'end_user_rpm', 'end_user_tpm', 'end_user_max_concurrent', 'guardrails',
    'cache_ttl_seconds', 'prompt_cache_markers', 'log_content', 'retention_days', 'judge_model', 'agent_enabled',
    'agent_scopes', 'agent_model', 'alert_webhook_url', 'alert_emails',
]


def carry_over(apps, schema_editor):
    """Puts the values of the columns into the one of all settings. `updated_at` stays."""
    rows = apps.get_model('gateway', 'GatewaySettings').objects
    for row in rows.iterator():
        values = {name: _plain(getattr(row, name)) for name in SETTINGS}
        rows.filter(pk=row.pk).update(values=values)


def carry_back(apps, schema_editor):
    """Puts the values back into their columns."""
    rows = apps.get_model('gateway', 'GatewaySettings').objects
    for row in rows.iterator():
        rows.filter(pk=row.pk).update(**{name: row.values[name] for name in SETTINGS if name in row.values})


def _plain(value):
    return f'{value.normalize():f}' if isinstance(value, Decimal) else value


class Migration(migrations.Migration):

    dependencies = [
        ('gateway', '0001_initial'),
    ]

    operations = [
        migrations.AddField('gatewaysettings', 'values', models.JSONField(blank=True, default=dict)),
        migrations.RunPython(carry_over, carry_back, elidable=True),
        *[migrations.RemoveField('gatewaysettings', name) for name in SETTINGS],
    ]

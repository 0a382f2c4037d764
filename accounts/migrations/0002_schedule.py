"""The beat's share of the accounts: old refresh tokens are forgotten every hour."""

from django.db import migrations

NAME = "accounts: forget old tokens"


def seed(apps, schema_editor):
    interval, _ = apps.get_model("django_celery_beat", "IntervalSchedule").objects.get_or_create(
        every=3600, period="seconds"
    )
    apps.get_model("django_celery_beat", "PeriodicTask").objects.update_or_create(
        name=NAME,
        defaults={"task": "accounts.forget_tokens", "interval": interval, "expire_seconds": 3000, "enabled": True},
    )


def unseed(apps, schema_editor):
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [migrations.RunPython(seed, unseed)]

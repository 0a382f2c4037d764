"""The archive's place in the beat's schedule."""

from django.db import migrations

NAME = "seckill: archive what has ended"


def seed(apps, schema_editor):
    interval, _ = apps.get_model("django_celery_beat", "IntervalSchedule").objects.get_or_create(
        every=60, period="seconds"
    )
    apps.get_model("django_celery_beat", "PeriodicTask").objects.update_or_create(
        name=NAME,
        defaults={"task": "seckill.archive_due", "interval": interval, "expire_seconds": 50, "enabled": True},
    )


def unseed(apps, schema_editor):
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("seckill", "0005_archive_tables"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [migrations.RunPython(seed, unseed)]

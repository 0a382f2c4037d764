"""The samples' place in the beat's schedule."""

from django.db import migrations

NAME = "seckill: sample what is on sale"
SECONDS, EXPIRES_SECONDS = 1, 2


def seed(apps, schema_editor):
    interval_model = apps.get_model("django_celery_beat", "IntervalSchedule")
    interval, _ = interval_model.objects.get_or_create(every=SECONDS, period="seconds")
    apps.get_model("django_celery_beat", "PeriodicTask").objects.update_or_create(
        name=NAME,
        defaults={"task": "seckill.sample", "interval": interval, "expire_seconds": EXPIRES_SECONDS, "enabled": True},
    )


def unseed(apps, schema_editor):
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("seckill", "0014_item_samples"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [migrations.RunPython(seed, unseed)]

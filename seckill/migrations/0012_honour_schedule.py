"""The beat's schedule of honours."""

from django.db import migrations

NAME = "seckill: honour payments"
SECONDS, EXPIRES_SECONDS = 5, 10


def seed(apps, schema_editor):
    interval_model = apps.get_model("django_celery_beat", "IntervalSchedule")
    interval, _ = interval_model.objects.get_or_create(every=SECONDS, period="seconds")
    apps.get_model("django_celery_beat", "PeriodicTask").objects.update_or_create(
        name=NAME,
        defaults={"task": "seckill.honour", "interval": interval, "expire_seconds": EXPIRES_SECONDS, "enabled": True},
    )


def unseed(apps, schema_editor):
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("seckill", "0011_sale_challenge"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [migrations.RunPython(seed, unseed)]

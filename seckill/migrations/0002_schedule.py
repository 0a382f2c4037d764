"""The beat's schedule: intervals, never crontabs, and every tick expires before the next ones pile up."""

from django.db import migrations

# name, task, seconds between runs, seconds after which an unstarted run is dropped
SCHEDULE = [
    ("sweep", "seckill.sweep", 1, 2),
    ("return closed orders", "seckill.return_closed", 2, 4),
    ("expire unpaid orders", "orders.expire", 5, 10),
    ("preheat what opens soon", "seckill.preheat_due", 60, 50),
    ("reconcile", "seckill.reconcile", 60, 50),
]


def seed(apps, schema_editor):
    interval_model = apps.get_model("django_celery_beat", "IntervalSchedule")
    task_model = apps.get_model("django_celery_beat", "PeriodicTask")
    for name, task, seconds, expires in SCHEDULE:
        interval, _ = interval_model.objects.get_or_create(every=seconds, period="seconds")
        task_model.objects.update_or_create(
            name=f"seckill: {name}",
            defaults={"task": task, "interval": interval, "expire_seconds": expires, "enabled": True},
        )


def unseed(apps, schema_editor):
    names = [f"seckill: {name}" for name, *_ in SCHEDULE]
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name__in=names).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("seckill", "0001_initial"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [migrations.RunPython(seed, unseed)]

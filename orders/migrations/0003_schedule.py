"""The beat's schedule of money: intervals, and every tick expires before the next ones pile up."""

from django.db import migrations

# name, task, seconds between runs, seconds after which an unstarted run is dropped
SCHEDULE = [
    ("ask providers", "orders.ask_due", 5, 10),
    ("send refunds", "orders.refund_due", 5, 10),
    ("deliver the sandbox's notifications", "orders.deliver_sandbox", 1, 2),
]


def seed(apps, schema_editor):
    interval_model = apps.get_model("django_celery_beat", "IntervalSchedule")
    task_model = apps.get_model("django_celery_beat", "PeriodicTask")
    for name, task, seconds, expires in SCHEDULE:
        interval, _ = interval_model.objects.get_or_create(every=seconds, period="seconds")
        task_model.objects.update_or_create(
            name=f"orders: {name}",
            defaults={"task": task, "interval": interval, "expire_seconds": expires, "enabled": True},
        )


def unseed(apps, schema_editor):
    names = [f"orders: {name}" for name, *_ in SCHEDULE]
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(name__in=names).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("orders", "0002_money"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [migrations.RunPython(seed, unseed)]

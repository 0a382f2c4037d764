from django.db import migrations, models

# What was written until now: names of classes, and sentences.
CODES = {
    "SoldOut": "sold_out",
    "NotEnoughLeft": "not_enough_left",
    "LimitReached": "limit_reached",
    "NotStarted": "not_started",
    "Ended": "ended",
    "Paused": "paused",
    "NotPreheated": "not_on_sale",
    "phantom": "not_settled",
    "invalid": "not_settled",
    "the closed order was no reservation": "no_reservation",
    "the new order was closed": "new_order_closed",
    "the new order is EXPIRED": "new_order_closed",
    "the new order is CANCELLED": "new_order_closed",
    "the new order is PAID": "new_order_paid",
    "the new order is PENDING_PAYMENT": "amount_differs",
}


def name_reasons(apps, schema_editor):
    honours = apps.get_model("orders", "Honour").objects
    for was, code in CODES.items():
        honours.filter(reason=was).update(reason=code)


class Migration(migrations.Migration):
    dependencies = [("orders", "0005_units_retry_at")]

    operations = [
        migrations.RunPython(name_reasons, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="honour",
            name="reason",
            field=models.CharField(
                blank=True,
                choices=[
                    ("no_reservation", "the closed order was no reservation of a sale"),
                    ("sold_out", "no unit is left"),
                    ("not_enough_left", "fewer units are left than the order had"),
                    ("limit_reached", "the buyer holds as many by now as one may have"),
                    ("not_started", "the sale is not open yet: ask again when it is"),
                    ("ended", "the sale is over"),
                    ("paused", "the item is paused: ask again when it is on sale"),
                    ("not_on_sale", "the sale is not open"),
                    ("not_settled", "MySQL refused the unit that Redis had given"),
                    ("new_order_closed", "the new order was closed before the money reached it"),
                    ("new_order_paid", "the buyer has paid the new order himself"),
                    ("amount_differs", "the money is not what the new order costs"),
                    ("other", "the gate said no"),
                ],
                max_length=200,
                verbose_name="why it was refused",
            ),
        ),
    ]

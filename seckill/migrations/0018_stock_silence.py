from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("seckill", "0017_saleitem_stopped_at")]

    operations = [
        migrations.CreateModel(
            name="StockSilence",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("server", models.CharField(max_length=40, unique=True)),
                ("since", models.DateTimeField()),
                ("seen_at", models.DateTimeField()),
            ],
            options={"default_permissions": ()},
        ),
    ]

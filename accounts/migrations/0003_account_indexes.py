"""Indexes of the accounts' table, which is Django's own: addresses are looked up, and staff is listed among a million buyers."""

from django.db import migrations

EMAIL = "CREATE INDEX account_email ON auth_user (email)"
STAFF = "CREATE INDEX account_is_staff ON auth_user (is_staff, username)"


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_schedule"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.RunSQL(EMAIL, "DROP INDEX account_email ON auth_user"),
        migrations.RunSQL(STAFF, "DROP INDEX account_is_staff ON auth_user"),
    ]

"""The groups of the four roles; what they may do is set after every migrate, see accounts/roles.py."""

from django.db import migrations

NAMES = ("buyer", "operator", "approver", "auditor")


def make(apps, schema_editor):
    groups = apps.get_model("auth", "Group").objects.using(schema_editor.connection.alias)
    for name in NAMES:
        groups.get_or_create(name=name)


def unmake(apps, schema_editor):
    apps.get_model("auth", "Group").objects.using(schema_editor.connection.alias).filter(name__in=NAMES).delete()


class Migration(migrations.Migration):
    dependencies = [("accounts", "0003_account_indexes"), ("auth", "0012_alter_user_first_name_max_length")]

    operations = [migrations.RunPython(make, unmake)]

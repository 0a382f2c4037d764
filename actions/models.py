"""The table of the action log: rows are added, and neither model nor database lets them be changed or deleted."""

from typing import Any, ClassVar, NoReturn, Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

REASON_LENGTH_MAX = 200
TEXT_LENGTH_MAX = 200
NOBODY_CHANGES = "the action log is only added to"


class Channel(models.TextChoices):
    """Where somebody acted."""

    DESK = "DESK", _("desk")
    API = "API", _("API")
    COMMAND = "COMMAND", _("command")


class Stage(models.TextChoices):
    """An action that ends in one transaction is one row; one that reaches Redis is two, before and after it."""

    BEGUN = "BEGUN", _("begun")
    DONE = "DONE", _("done")
    FAILED = "FAILED", _("not done")


class Rows(models.QuerySet["ActionEntry"]):
    """Rows that can be read and added."""

    def update(self, **kwargs: Any) -> NoReturn:
        """Refuse."""
        raise TypeError(NOBODY_CHANGES)

    def delete(self) -> NoReturn:
        """Refuse."""
        raise TypeError(NOBODY_CHANGES)


class ActionEntry(models.Model):
    """Who did what to which thing, what it was before and after, why, when, and from where.

    Nothing here refers to another table by a key: an entry outlives the account and the thing it tells of.
    """

    at = models.DateTimeField(_("at"))
    attempt = models.CharField(_("attempt"), max_length=32, help_text=_("The same in the rows before and after."))
    stage = models.CharField(_("stage"), max_length=8, choices=Stage)
    channel = models.CharField(_("channel"), max_length=8, choices=Channel)
    account_id = models.BigIntegerField(_("account's number"), null=True)
    who = models.CharField(_("who"), max_length=150)
    what = models.CharField(_("what"), max_length=64)
    table = models.CharField(_("kind of thing"), max_length=64)
    key = models.CharField(_("its number"), max_length=64)
    thing = models.CharField(_("thing"), max_length=TEXT_LENGTH_MAX)
    before = models.JSONField(_("before"), default=dict)
    after = models.JSONField(_("after"), default=dict)
    reason = models.CharField(_("reason"), max_length=REASON_LENGTH_MAX)
    note = models.CharField(_("note"), max_length=TEXT_LENGTH_MAX)
    request_id = models.CharField(_("request id"), max_length=64)
    address = models.CharField(_("address"), max_length=45)

    objects: ClassVar[models.Manager[Self]] = models.Manager.from_queryset(Rows)()

    class Meta:
        verbose_name = _("action")
        verbose_name_plural = _("action log")
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["table", "key", "id"], name="action_of_thing"),
            models.Index(fields=["who", "id"], name="action_by_whom"),
            models.Index(fields=["what", "id"], name="action_what"),
            models.Index(fields=["at"], name="action_at"),
            models.Index(fields=["request_id"], name="action_request"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(stage__in=Stage.values), name="actionentry_stage_known"),
            models.CheckConstraint(condition=Q(channel__in=Channel.values), name="actionentry_channel_known"),
            models.CheckConstraint(condition=~Q(who=""), name="actionentry_by_somebody"),
        ]

    def __str__(self) -> str:
        return f"{self.what}: {self.thing}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Write a new row; refuse to write an old one again."""
        if not self._state.adding:
            raise TypeError(NOBODY_CHANGES)
        super().save(*args, **{**kwargs, "force_insert": True})

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        raise TypeError(NOBODY_CHANGES)

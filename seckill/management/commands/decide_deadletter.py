"""``manage.py decide_deadletter ID --replay|--refuse --reason TEXT``: decide about a parked reservation."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from seckill.command_log import recorded_command
from seckill.errors import DecisionRefused, GateUnavailable
from seckill.models import DeadLetter
from seckill.replay import Verdict, decide_letter


class Command(BaseCommand):
    help = "Replay or refuse a reservation that was parked as a dead letter."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("letter_id", type=int)
        choice = parser.add_mutually_exclusive_group(required=True)
        choice.add_argument("--replay", action="store_true", help="back into the queue, if a unit is left for it")
        choice.add_argument("--refuse", action="store_true", help="close its order number; its buyer is told")
        parser.add_argument("--reason", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        decision = DeadLetter.Decision.REPLAY if options["replay"] else DeadLetter.Decision.REFUSE
        verdict = Verdict(letter_id=options["letter_id"], decision=decision, actor_id=None, reason=options["reason"])
        try:
            with recorded_command(
                command="decide_deadletter", table=DeadLetter, key=verdict.letter_id, reason=verdict.reason
            ):
                decide_letter(verdict=verdict, clock=timezone.now)
        except DecisionRefused as error:
            raise CommandError(str(error)) from error
        except GateUnavailable as error:
            self.stdout.write(f"decided; it is carried out as soon as Redis is back: {error}")
            return
        self.stdout.write(self.style.SUCCESS(f"dead letter {verdict.letter_id}: {decision.label}"))

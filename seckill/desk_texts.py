"""What the scripts of the operator's pages say, by key: translated here, filled in there."""

import json
from collections.abc import Mapping

from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise

from seckill.models import ReconciliationRun
from seckill.states import SalePhase

TEXTS: Mapping[str, StrOrPromise] = {
    **{f"phase_{phase.value}": phase.label for phase in SalePhase},
    **{f"verdict_{verdict.value}": verdict.label for verdict in ReconciliationRun.Verdict},
    "verdict_none": _("not compared yet"),
    # How fresh the page is.
    "fresh": _("Live"),
    "waiting": _("Asking …"),
    "stale": _("These numbers are {age} old. The shop does not answer; asking again in {seconds} s."),
    "logged_out": _("You are not logged in any more. Reload the page to log in."),
    "forbidden": _("You may not watch this sale any more."),
    "unsampled": _("Nobody takes samples: the charts stand still. Are beat and a worker alive?"),
    # The clock of the sale.
    "opens_in": _("opens in {time}"),
    "closes_in": _("closes in {time}"),
    "closed_since": _("closed {time} ago"),
    # Instants of a sale.
    "in_time": _("in {time}"),
    "your_time": _("{time} by your clock"),
    # Ages and rates.
    "seconds": _("{number} s"),
    "minutes": _("{number} min"),
    "hours": _("{number} h"),
    "days": _("{number} d"),
    "ago": _("{time} ago"),
    "per_second": _("{number}/s"),
    "of_units": _("of {units}"),
    "in_all": _("{number} in all"),
    # Gates.
    "gate_open": _("open to buyers"),
    "gate_frozen": _("frozen: a rebuild is needed or under way"),
    "gate_sealed": _("sealed for the archive"),
    "gate_missing": _("not to be seen in Redis"),
    # Incidents.
    "no_incidents": _("No open incident"),
    "incidents": _("Open incidents: {number}"),
    "times": _("{number} times"),
    # The audit.
    "reconciling": _("A worker compares both stores. The result appears here."),
    "reconcile_late": _("No result yet. Are the workers alive? Beat compares each minute anyway."),
    # Charts.
    "accepted": _("Accepted per second"),
    "sold_out": _("Sold out per second"),
    "left": _("Units left"),
    "queued": _("Units waiting for MySQL"),
    "settle_title": _("Settle lag"),
    "settle_mean": _("Average wait of what was settled"),
    "settle_oldest": _("Longest wait seen"),
    # Stages of a purchase, in their order.
    "stage_receive": _("received and read"),
    "stage_ticket": _("ticket checked"),
    "stage_redis": _("way to Redis and back"),
    "stage_script": _("script in Redis"),
    "stage_publish": _("wake-up noted"),
    "stage_answer": _("answer written"),
    "stages_whole": _("{time} on average"),
    "stages_sampled": _("Timed: one purchase of {one_in}, {number} in the last {seconds} s, in all sales."),
    "stages_none": _("No purchase was timed in the last {seconds} s; one of {one_in} is."),
    "stages_off": _("No purchase is timed: STAGE_SAMPLE_ONE_IN is 0."),
    "stage_bounds": _("half ≤ {half}, 99 of 100 ≤ {most}"),
    "no_samples": _("No samples yet."),
    "peak": _("peak {number}"),
    "now": _("now {number}"),
}


def texts_json() -> str:
    """All texts in the language of this request."""
    return json.dumps({key: str(text) for key, text in TEXTS.items()}, ensure_ascii=False)

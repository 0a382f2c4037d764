"""What each kind of incident means for whoever is called: what the system did by itself, and what a person can do.

Shown by ``manage.py reconcile``, on the incident's page and in messages; in the reader's language.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One kind of incident: ``what`` happened, what was ``did`` by the system, what ``can`` be by an operator."""

    what: StrOrPromise
    did: StrOrPromise
    can: StrOrPromise

    def __str__(self) -> str:
        return f"{self.did} {self.can}"


UNKNOWN = Advice(
    what=_("Something that should not have happened"),
    did=_("The system has noted what it saw, and has changed nothing."),
    can=_("Read the detail, and the log around the time it was last seen."),
)

ADVICE: Mapping[str, Advice] = {
    "drift": Advice(
        what=_("Redis and MySQL counted differently"),
        did=_(
            "Units that Redis has too many are taken away at once. Units it has too few are given back once two looks"
            " half a minute apart have shown them."
        ),
        can=_(
            "Wait a minute. If it stays or comes again, somebody or something writes to the stock Redis: pause the"
            " item, run manage.py reconcile --full, and find out who."
        ),
    ),
    "marks_differ": Advice(
        what=_("Buyers' marks in Redis were not what MySQL says"),
        did=_(
            "A buyer's mark that was missing or too low is set at once. One that was too high, so that the buyer was"
            " refused what he may have, is lowered once two looks half a minute apart have shown it."
        ),
        can=_(
            "Nobody got more than the limit: MySQL refuses him. If it comes again, somebody writes to the stock Redis;"
            " manage.py reconcile --full --repair looks at every buyer now."
        ),
    ),
    "receipts_differ": Advice(
        what=_("Receipts in Redis were not what MySQL says"),
        did=_(
            "Receipts that were missing, damaged or of another state than MySQL's row are written again from the row."
            " A receipt without any row in MySQL is left as it is: nobody knows whose order it was."
        ),
        can=_(
            "Look in the dead letters for the order number. Where there is nothing to be saved, manage.py rebuild makes"
            " all receipts anew from MySQL; the buyer may then use the same ticket again."
        ),
    ),
    "books_differ": Advice(
        what=_("The ledger and a stored number differ"),
        did=_("Nothing was changed: the ledger and the stored number say different things, and one of them is wrong."),
        can=_(
            "Run manage.py audit_stock. Somebody wrote to a table by hand, or restored a part of the database: compare"
            " with the last backup, and have the difference approved as a stock change."
        ),
    ),
    "phantom": Advice(
        what=_("Redis sold units that do not exist"),
        did=_(
            "Redis had sold units that do not exist. MySQL has refused them, their buyers were told, and a"
            " reconciliation was started. It closes when the books are balanced again."
        ),
        can=_("Find out who raised the stock in Redis; the refused orders are listed as reservations."),
    ),
    "order_differs": Advice(
        what=_("Redis and MySQL differ about an order"),
        did=_(
            "Redis and MySQL said different things about one order number. MySQL's row stands, and the receipt is"
            " written again from it."
        ),
        can=_("Compare the reservation with what the buyer says he bought; cancel or refund by the order's page."),
    ),
    "row_refused": Advice(
        what=_("An order could not be written"),
        did=_(
            "One order could not be written to MySQL, alone of its batch. It was refused, its unit is on sale again and"
            " its buyer was told."
        ),
        can=_("Read why in the detail: most often the account was deleted. The buyer may try again."),
    ),
    "dead_letter": Advice(
        what=_("Reservations were put aside"),
        did=_(
            "An entry of the queue could be neither read nor written. It was put aside, and its units are on sale again"
            " once that is proved. Its buyer's poll says queued until somebody decides."
        ),
        can=_(
            "Look at the dead letters and decide each, there or by manage.py decide_deadletter: replay what is a sound"
            " reservation, refuse the rest. Find out what damaged the entry or killed its worker before you replay it."
        ),
    ),
    "redis_lost": Advice(
        what=_("A bucket in Redis is missing or damaged"),
        did=_("The gate is closed, and is being rebuilt from MySQL; that takes seconds. Nothing is sold meanwhile."),
        can=_("Wait. If it stays longer than a minute, see whether the workers of the slow queue and MySQL are up."),
    ),
    "stock_unreachable": Advice(
        what=_("The stock Redis does not answer"),
        did=_(
            "Nobody could be sold anything: every purchase is answered with a request to try again. What was sold"
            " before is safe; when the server answers, its buckets are checked, and rebuilt where something is missing."
        ),
        can=_(
            "Start the stock Redis, or see why it cannot be reached from the workers: host, network, password, memory."
            " Do not restore an old dump of it, and do not point the shop to an empty server by hand while this one may"
            " come back."
        ),
    ),
    "queue_forked": Advice(
        what=_("Redis was rolled back"),
        did=_("Redis tells another history than MySQL: it was rolled back. The gate is closed and is being rebuilt."),
        can=_("Wait. Buyers who lost their place see so, and may use the same ticket again. Check Redis's disk."),
    ),
    "commits_lost": Advice(
        what=_("MySQL has forgotten what it had"),
        did=_(
            "MySQL does not have what it once had: it was restored, or failed over. The gate is closed and stays so,"
            " since stock made from such books would be sold twice."
        ),
        can=_(
            "Bring the missing commits back if they exist anywhere. If they do not, manage.py rebuild"
            " --accept-lost-commits opens the sale with what MySQL has."
        ),
    ),
    "keeps_breaking": Advice(
        what=_("A bucket breaks again and again"),
        did=_("Three rebuilds began within ten minutes, and the bucket failed or broke again. It stays shut."),
        can=_(
            "Find out what writes to the stock Redis, or why it restarts; then open it by manage.py rebuild. Where"
            " MySQL cannot take what waits in the queue, --put-queue-aside parks it, to be decided later."
        ),
    ),
    "settlement_stopped": Advice(
        what=_("Settlement has stopped"),
        did=_(
            "MySQL said something that is about no single order. Nobody was refused; reservations wait in the queue,"
            " and it is tried again each second."
        ),
        can=_("Read the detail: a migration that did not run, a full disk, a missing right. It drains by itself then."),
    ),
    "worker_killed": Advice(
        what=_("Workers die in settlement"),
        did=_(
            "Workers died settling this bucket. Its batches are halved until the entry that kills them, if it is one,"
            " stands alone and is put aside; then they grow again."
        ),
        can=_("See why workers die: memory, time limits, a deployment. Nothing is lost, and whoever waits is served."),
    ),
    "returns_stuck": Advice(
        what=_("Units of closed orders do not come back"),
        did=_(
            "Some closed orders' units cannot be taken back. All others are; these are tried again every two seconds."
        ),
        can=_("Read the detail, and run manage.py audit_stock for the item it names."),
    ),
    "archive_blocked": Advice(
        what=_("An archive is held up"),
        did=_("The sale is over and stays in Redis: its archive stopped before anything was removed."),
        can=_("Read what it waits for in the detail. What is to be given up is named by manage.py archive --help."),
    ),
    "archive_differs": Advice(
        what=_("Redis and MySQL differed at the archive"),
        did=_(
            "Redis and MySQL said different things when the sale was archived. MySQL's numbers stand; what Redis said"
            " is kept in the archive's manifest and in the archived buyers."
        ),
        can=_("Read the manifest on the archive's page: it names the first of the buyers and orders that differ."),
    ),
    "change_stuck": Advice(
        what=_("An approved change is not applied"),
        did=_("A change by hand was approved and could not be finished; it is tried again every two seconds."),
        can=_(
            "See whether the bucket has another incident: while Redis is away or being rebuilt, changes wait. If it has"
            " none, read the log of the task seckill.follow_up."
        ),
    ),
    "not_preheated": Advice(
        what=_("A sale that opens soon is not in Redis"),
        did=_("The sale opens soon and is not in Redis yet; it is tried again each minute."),
        can=_(
            "Read the detail. Most often the warehouse has too few units: receive them, or lower the sale's units. Or"
            " the stock Redis is away: start it, and the sale is brought into it by itself."
        ),
    ),
    "lock_busy": Advice(
        what=_("A lock is held too long"),
        did=_(
            "Somebody else's transaction has held a lock for over half a minute, and settlement waits for it. Nobody is"
            " refused for that; reservations wait in the queue."
        ),
        can=_("End the session that the detail names (KILL and its number), and find out what it was doing."),
    ),
}


def advice_for(kind: str) -> Advice:
    """Return the advice for a kind of incident; a kind that is not listed gets a general one."""
    return ADVICE.get(kind, UNKNOWN)

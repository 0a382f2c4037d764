"""What the scripts of the buyers' pages say, by key: translated here, filled in there."""

import json
from collections.abc import Mapping

from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise

TEXTS: Mapping[str, StrOrPromise] = {
    # The clock of a sale.
    "clock_scheduled": _("Opens in"),
    "clock_preheated": _("Opens in"),
    "clock_live": _("On sale now. Closes in"),
    "clock_ended": _("This sale is over."),
    "say_soon": _("The sale opens in {seconds} seconds."),
    "say_open": _("The sale is open."),
    # What is left of an item.
    "level_plenty": _("Plenty left"),
    "level_few": _("Few left"),
    "level_last": _("The last ones"),
    "level_none_left": _("None left right now"),
    "level_unknown": _("Nobody can count them at the moment"),
    # The button.
    "buy": _("Buy now"),
    "buying": _("Buying …"),
    # Before the click.
    "state_login": _("Log in before the opening; buying is one click then."),
    "state_scheduled": _("Tickets are given shortly before the opening. This page gets yours by itself."),
    "state_ticket": _("Getting your ticket …"),
    "state_ticket_slow": _("Many are getting their tickets. You need to do nothing, yours is on its way …"),
    "state_challenge": _(
        "Your device is doing a little sum for your ticket, to keep robots out. It takes a few seconds, "
        "in the background."
    ),
    "state_challenge_wait": _("Your ticket comes within {seconds} seconds, without a sum."),
    "state_ready_early": _("Your ticket is here. The button comes alive when the sale opens; no need to reload."),
    "state_ready": _("Your ticket is here. One click is one purchase."),
    "state_paused": _("The shop has paused this item. Leave the page open, it goes on by itself."),
    "state_taken": _(
        "All are taken, but some are not paid until {time}. What is not paid comes back here; leave the page open."
    ),
    "state_sold_out": _("Sold out. Every unit is paid for."),
    "state_ended": _("This sale is over. Thank you for coming."),
    "state_more": _("You may buy another one."),
    # After the click.
    "state_sending": _("Sending your purchase …"),
    "state_again": _("Your purchase is being sent again. It is still one purchase."),
    "state_no_answer": _("No answer yet. We ask again by ourselves; it stays one purchase."),
    "state_offline": _("You are offline. We go on by ourselves as soon as the connection is back."),
    "state_queueing": _("There is a queue. You are in it, and we try again by ourselves in a moment."),
    "state_busy": _("Very many are buying this second. We try again by ourselves in a moment, with your ticket."),
    "state_unavailable": _("The shop is catching its breath. Your ticket stays good, we try again by ourselves."),
    "state_not_preheated": _("The sale is being made ready. We try again by ourselves."),
    "state_early": _("You were a blink too early. We send it at the opening."),
    "state_confirming": _("Accepted. Your order is being confirmed …"),
    "state_confirming_slow": _("Accepted. Confirming takes longer than usual; your unit is kept for you."),
    "state_unknown": _("We are looking up what became of your purchase. It is not lost."),
    "state_not_reserved": _("There is no purchase of this number."),
    "state_problem": _("There is no purchase of this number."),
    "state_provider_unavailable": _("The payment service does not answer yet. We try again by ourselves."),
    # Why not, and what to do.
    "problem_sold_out": _("You were too late for this one: all are taken at this moment."),
    "problem_not_enough_left": _("Only {left} left. Click again to buy that many."),
    "problem_limit_reached": _("You already have as many as one buyer may have."),
    "problem_ended": _("The sale was over before your purchase arrived."),
    "problem_ticket_expired": _("Your ticket was too old. We are getting you a new one."),
    "problem_ticket_invalid": _("Your ticket was not valid any more. We are getting you a new one."),
    "problem_price_changed": _("The price has changed to the one above. Click again if it still suits you."),
    "problem_not_authenticated": _("You are not logged in any more. Please log in again."),
    "problem_blocked": _("This account cannot buy here. Please write to the shop."),
    "problem_challenge_required": _(
        "No ticket could be had for you yet. Leave the page open, it asks again by itself."
    ),
    "problem_challenge_failed": _("No ticket could be had for you yet. Leave the page open, it asks again by itself."),
    "problem_internal": _("Something broke on our side, and it is not your fault. Please click again."),
    "denied_account_inactive": _("This account is switched off. Please write to the shop."),
    "denied_members_first": _("Members buy first. Your turn comes at {until}; this page gets your ticket by itself."),
    "refused_limit_reached": _("Not confirmed: you already have as many as one buyer may have. Look into your orders."),
    "refused_phantom": _("Not confirmed: our count was wrong, and this unit did not exist. Sorry; please try again."),
    "refused_invalid": _("Not confirmed: the order could not be written. Sorry; please try again."),
    "login": _("Log in"),
    "pay_it": _("You have one, pay it"),
    "see_it": _("See your order"),
    # An order.
    "order_facts": _("{item}, {variant} × {quantity} · {amount}"),
    "order_pending_payment": _("It is yours. Please pay."),
    "order_paid": _("Paid. It is yours."),
    "order_cancelled": _("Cancelled"),
    "order_expired": _("Not paid in time"),
    "order_refunded": _("Refunded"),
    "order_refunded_advice": _("The money goes back to you the way it came."),
    "order_paid_advice": _("Thank you! You need to do nothing more."),
    "order_cancelled_advice": _("Your order was cancelled. There is nothing to pay."),
    "order_expired_advice": _(
        "The time to pay was over, so the unit is given away. While the sale is on you can try again."
    ),
    "pay_within": _("{timer} left to pay, until {time}"),
    "pay_warning": _("Hurry: less than {minutes} min left to pay."),
    "pay_waiting": _("Paid already? The payment service has not told us yet; this page shows it as soon as it does."),
    "pay_over": _("The time to pay is over. We are checking whether a payment is on its way …"),
    "pay": _("Pay now"),
    "pay_going": _("Taking you to the payment …"),
    "cancel": _("Cancel the order"),
    "cancel_question": _("Cancel this order? The unit is given away, and you may not get another."),
    "cancel_yes": _("Yes, cancel it"),
    "cancel_no": _("No, keep it"),
    "cancelling": _("Cancelling …"),
    "to_order": _("Your order"),
    # What is open.
    "open_unpaid": _("An order waits to be paid until {time}"),
    "open_queued": _("A purchase is being confirmed"),
    "open_unknown": _("A purchase is being looked up"),
}


def texts_json() -> str:
    """Return all texts in the language of the request, as JSON."""
    return json.dumps({key: str(text) for key, text in TEXTS.items()}, ensure_ascii=False)

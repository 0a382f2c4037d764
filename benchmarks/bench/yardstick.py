"""What the guard measures purchases by: a bare answer, and in front of it work that never changes.

A bare answer alone is no yardstick: on a busy machine its time grows by another factor than a purchase's, most of
which is Python. So this does a purchase's kind of work, which no change to the shop can make quicker or slower.
"""

import hmac
import json
from typing import TYPE_CHECKING

from benchmarks.bench import bare

if TYPE_CHECKING:
    from a2wsgi.asgi_typing import Receive, Scope, Send

TEXT = json.dumps({"ticket": "x" * 200, "quantity": 1, "claims": ["1-0-abcdefgh", 1, 2, "3", "4.00", 5]})
REPEATS = 12


async def application(scope: "Scope", receive: "Receive", send: "Send") -> None:
    """Work, and answer."""
    for _ in range(REPEATS):
        read = json.loads(TEXT)
        hmac.digest(b"key", read["ticket"].encode(), "sha256")
        json.dumps({name: value for name, value in read.items() if name != "claims"})
    await bare.application(scope, receive, send)

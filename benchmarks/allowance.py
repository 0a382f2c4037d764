"""What a fault may bring about without a law being broken."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """Allowed besides the laws.

    `incidents` are kinds that the shop ought to notice and must have closed by the end; `forgotten_max` is how many
    accepted buyers may be told that there is no trace of their purchase, as Redis's append-only file ends early.
    """

    incidents: frozenset[str] = frozenset()
    forgotten_max: int = 0


NOTHING = Allowance()

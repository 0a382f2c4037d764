"""The rules of the accounts' tables hold in the database itself."""

from typing import Any

import pytest
from django.db import models

from accounts.models import Block, ExternalIdentity
from tests.support.rows import CHECK_VIOLATED, DUPLICATE, assert_refused, check_names, error_code
from tests.support.shop import make_buyers

# rule, table, what somebody tries to write
BAD_WRITES: list[tuple[str, type[models.Model], dict[str, Any]]] = [
    ("block_account_or_network", Block, {"network": ""}),
    ("external_identity_named", ExternalIdentity, {"subject": ""}),
    ("external_identity_named", ExternalIdentity, {"provider": ""}),
]


@pytest.mark.parametrize(("rule", "table", "change"), BAD_WRITES)
def test_bad_writes_change_nothing(rule: str, table: type[models.Model], change: dict[str, Any]) -> None:
    Block.objects.create(network="192.0.2.0/24", reason="robots")
    ExternalIdentity.objects.create(provider="chat", subject="a", account=make_buyers(1)[0])
    assert_refused(table=table, change=change, rule=rule, codes=CHECK_VIOLATED)


def test_a_block_names_one_of_the_two() -> None:
    (buyer,) = make_buyers(1)
    block = Block(account=buyer, network="192.0.2.0/24", reason="both")
    assert error_code(block.save) in CHECK_VIOLATED


def test_a_subject_has_one_account() -> None:
    first, second = make_buyers(2)
    ExternalIdentity.objects.create(provider="chat", subject="a", account=first)
    assert error_code(ExternalIdentity(provider="chat", subject="a", account=second).save) == DUPLICATE
    ExternalIdentity.objects.create(provider="chat", subject="A", account=second)


def test_every_rule_has_its_case() -> None:
    assert {rule for rule, *_ in BAD_WRITES} == check_names(Block, ExternalIdentity)

"""The health page of a web process."""

import json

from django.test import Client


def test_healthy() -> None:
    response = Client().get("/healthz")
    assert (response.status_code, json.loads(response.content)) == (200, {"mysql": True, "stock_redis": True})
    assert "no-store" in response["Cache-Control"]
    assert response["Content-Type"] == "application/json"


def test_a_balancer_may_ask_for_the_head_alone_and_nobody_may_post() -> None:
    assert Client().head("/healthz").status_code == 200
    assert Client().post("/healthz").status_code == 405

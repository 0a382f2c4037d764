"""``/metrics`` on a worker's own port: shut without a port, and to whom the web's is shut."""

from http.client import HTTPConnection

import pytest
from pytest_django import Settings

from benchmarks.servers.process import free_port
from config.worker_metrics import serve_if_wanted
from metrics.definitions import begin_process
from tests.support.scrape import TOKEN, samples_of, value


def ask(port: int, *, path: str = "/metrics", token: str = "") -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_a_worker_tells_what_its_host_has_counted(settings: Settings) -> None:
    settings.METRICS_TOKEN = TOKEN
    settings.METRICS_PORT = free_port()
    begin_process(role="worker")
    serve_if_wanted()
    status, text = ask(settings.METRICS_PORT, token=TOKEN)
    assert status == 200
    assert value(samples_of(text), "seckill_processes", role="worker") == 1
    assert "seckill_up" not in text
    assert ask(settings.METRICS_PORT) == (404, "")
    assert ask(settings.METRICS_PORT, path="/", token=TOKEN) == (404, "")


def test_a_taken_port_stops_no_worker(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    settings.METRICS_PORT = free_port()
    serve_if_wanted()
    serve_if_wanted()
    assert f"no metrics on 127.0.0.1:{settings.METRICS_PORT}" in caplog.text
    settings.METRICS_PORT = 0
    serve_if_wanted()

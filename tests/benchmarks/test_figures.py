"""How the benchmarks read wrk, take turns and hold figures against what they are to reach."""

import pytest

from benchmarks.bench import wrk
from benchmarks.bench.figures import Figure, Goal, Kind, Sample, by_turns, ratio
from benchmarks.servers import ServersError

SAID = """Running 5s test @ http://127.0.0.1:8000/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     4.20ms    3.00ms  90.10ms   92.00%
    Req/Sec    11.42k     1.26k   13.91k    68.00%
  Latency Distribution
     50%  812.00us
     75%    4.30ms
     90%    6.80ms
     99%    1.20s
  56911 requests in 5.01s, 42.01MB read
"""
BAD = """  Socket errors: connect 1, read 2, write 3, timeout 4
  Non-2xx or 3xx responses: 17
"""


def test_what_wrk_says_is_read() -> None:
    seen = wrk.read(SAID)
    assert seen == wrk.Load(requests=56_911, seconds=5.01, p50_ms=0.812, p99_ms=1_200.0, not_2xx=0, lost=0)
    assert seen.per_second == pytest.approx(11_359.5, abs=0.1)


def test_errors_and_refusals_are_counted() -> None:
    seen = wrk.read(SAID + BAD)
    assert (seen.not_2xx, seen.lost) == (17, 10)


def test_what_is_no_report_of_wrk_is_an_error() -> None:
    with pytest.raises(ServersError, match="cannot be read"):
        wrk.read("unable to connect to 127.0.0.1:1 Connection refused")


def test_turns_are_taken_in_changing_order() -> None:
    order: list[str] = []

    def turn(name: str) -> Sample:
        order.append(name)
        return Sample(value=len(order), count=1)

    found = by_turns({name: lambda name=name: turn(name) for name in "abc"}, rounds=2, before_round=lambda _: None)  # type: ignore[misc]
    assert order == ["a", "b", "c", "b", "c", "a"]
    assert [sample.value for sample in found["a"]] == [1, 6]


def test_a_ratio_is_taken_round_by_round() -> None:
    """A round in which the machine was slow counts like the others: both were slow in it."""
    one = [Sample(value=value, count=1) for value in (200, 20, 210)]
    other = [Sample(value=value, count=1) for value in (100, 10, 100)]
    assert ratio(one, other) == 2.0


def test_a_figure_is_the_median_of_its_turns_and_counts_them_all() -> None:
    samples = [Sample(value=value, count=10, p99_ms=value, not_2xx=1) for value in (3, 1, 2)]
    figure = Figure(part="a", name="x", kind=Kind.ACCEPTED, samples=samples)
    told = figure.to_json()
    assert (told["value"], told["p99_ms"], told["p50_ms"]) == (2, 2, None)
    assert (told["count"], told["not_2xx"], told["turns"]) == (30, 3, [3, 1, 2])


@pytest.mark.parametrize(
    ("goal", "is_reached"),
    [
        (Goal(part="a", name="x", value=2, least=2), True),
        (Goal(part="a", name="x", value=1.9, least=2), False),
        (Goal(part="a", name="x", value=2, most=2), True),
        (Goal(part="a", name="x", value=2.1, most=2), False),
    ],
)
def test_a_goal_is_reached_at_its_bound(goal: Goal, *, is_reached: bool) -> None:
    assert goal.is_reached is is_reached

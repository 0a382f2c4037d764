"""A process's short memory: one look for a crowd, and never an old one."""

import threading

import pytest

from rest.memory import Memory, forget_everything
from tests.support.threads import run_together


class Counter:
    """Something to be remembered, which counts how often it was made."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> int:
        """Count one look."""
        self.made += 1
        return self.made


def test_a_crowd_costs_one_look() -> None:
    memory, looks = Memory[int](seconds=60, entries_max=9), Counter()
    go = threading.Event()

    def slow() -> int:
        go.wait(5)
        return looks()

    threading.Timer(0.05, go.set).start()
    assert run_together(lambda _: memory.get("sale", slow), range(20)) == [1] * 20
    assert looks.made == 1


def test_what_is_old_is_made_anew() -> None:
    memory, looks = Memory[int](seconds=0, entries_max=9), Counter()
    assert [memory.get("sale", looks) for _ in range(3)] == [1, 2, 3]


def test_keys_are_apart_and_their_number_is_bounded() -> None:
    memory, looks = Memory[int](seconds=60, entries_max=2), Counter()
    assert [memory.get(key, looks) for key in ("a", "b", "c", "b", "a")] == [1, 2, 3, 2, 4]


def test_what_the_crowd_asks_for_is_not_pushed_out() -> None:
    memory, looks = Memory[int](seconds=60, entries_max=2), Counter()
    hot = [(memory.get("hot", looks), memory.get(f"made up {number}", looks))[0] for number in range(5)]
    assert hot == [1] * 5


def test_a_failure_is_not_remembered() -> None:
    memory, looks = Memory[int](seconds=60, entries_max=2), Counter()

    def fail() -> int:
        raise KeyError

    with pytest.raises(KeyError):
        memory.get("a", fail)
    assert memory.get("a", looks) == 1
    forget_everything()
    assert memory.get("a", looks) == 2

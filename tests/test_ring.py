"""Slots and mailboxes: nothing is lost without being handed back, nothing is held by two owners."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rt.ring import Closed, Mailbox, Slot, SlotRing


class RingMachine(RuleBasedStateMachine):
    """Against a model that counts holders in a dictionary."""

    @initialize(count=st.integers(1, 5))
    def build(self, count: int) -> None:
        self.ring = SlotRing(count, 2, 2)
        self.holders: dict[Slot, int] = {}

    @rule()
    def acquire(self) -> None:
        slot = self.ring.acquire()
        if len(self.holders) == len(self.ring):
            assert slot is None
        else:
            assert slot is not None
            assert slot not in self.holders
            self.holders[slot] = 1

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), more=st.integers(1, 3))
    def retain(self, data: st.DataObject, more: int) -> None:
        slot = data.draw(st.sampled_from(list(self.holders)))
        slot.retain(more)
        self.holders[slot] += more

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        slot = data.draw(st.sampled_from(list(self.holders)))
        slot.release()
        self.holders[slot] -= 1
        if not self.holders[slot]:
            del self.holders[slot]

    @invariant()
    def free_and_held_add_up(self) -> None:
        assert self.ring.free + len(self.holders) == len(self.ring)


TestRing = RingMachine.TestCase


def test_a_closed_ring_gives_its_memory_back_at_once_and_a_holders_when_it_lets_go() -> None:
    """Without the garbage collector, which may come much later: a slot at 1080p takes 6 MB."""
    ring = SlotRing(2, 2, 2)
    held, free = ring.acquire(), ring.acquire()
    assert held is not None
    assert free is not None
    memory = [weakref.ref(slot.pixels) for slot in (held, free)]
    free.release()
    gc.disable()
    try:
        ring.close()
        del free
        assert [kept() is None for kept in memory] == [False, True]
        held.release()
        assert ring.acquire() is None
        del held
        assert [kept() is None for kept in memory] == [True, True]
    finally:
        gc.enable()


def test_a_slot_nobody_holds_cannot_be_released_again() -> None:
    slot = SlotRing(1, 2, 2).acquire()
    assert slot is not None
    slot.release()
    with pytest.raises(RuntimeError, match="nobody holds"):
        slot.release()
    with pytest.raises(RuntimeError, match="nobody holds"):
        slot.retain()


def test_slots_have_memory_of_their_own() -> None:
    ring = SlotRing(3, 4, 6)
    slots = [ring.acquire() for _ in range(3)]
    for value, slot in enumerate(slots):
        assert slot is not None
        slot.pixels[:] = value
    assert [int(slot.pixels.max()) for slot in slots if slot] == [0, 1, 2]
    assert all(slot.pixels.shape == (4, 6, 3) and slot.pixels.flags.c_contiguous for slot in slots if slot)


@given(depth=st.integers(1, 5), items=st.lists(st.integers(), max_size=40))
def test_the_latest_win_and_what_gives_way_is_handed_back(depth: int, items: list[int]) -> None:
    box: Mailbox[int] = Mailbox(depth)
    displaced = [back for item in items if (back := box.put(item)) is not None]
    assert box.drain() == items[-depth:]
    assert displaced == items[: max(0, len(items) - depth)]


@given(depth=st.integers(1, 4), items=st.lists(st.integers(), max_size=60))
def test_a_lossless_box_hands_on_everything_in_order(depth: int, items: list[int]) -> None:
    box: Mailbox[int] = Mailbox(depth, lossless=True)

    def send() -> None:
        for item in items:
            assert box.put(item) is None
        box.close()

    sender = threading.Thread(target=send)
    sender.start()
    received = [box.take(timeout_s=10) for _ in items]
    sender.join()
    assert received == items
    with pytest.raises(Closed):
        box.take()


def test_closing_frees_a_sender_that_waits() -> None:
    box: Mailbox[int] = Mailbox(1, lossless=True)
    box.put(1)
    back: list[int | None] = []
    sender = threading.Thread(target=lambda: back.append(box.put(2)))
    sender.start()
    box.close()
    sender.join()
    assert back == [2]
    assert box.take() == 1
    with pytest.raises(Closed):
        box.take()


def test_taking_from_an_empty_box_ends_in_time() -> None:
    assert Mailbox[int]().take(timeout_s=0.0) is None


@pytest.mark.parametrize("make", [lambda: SlotRing(0, 2, 2), lambda: Mailbox(0)])
def test_nothing_of_size_zero(make: object) -> None:
    with pytest.raises(ValueError, match="give 1 or more"):
        make()  # type: ignore[operator]

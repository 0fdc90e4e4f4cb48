"""Undo and redo against a plain list of steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.history import History, changed_fields, with_default
from app.settings import LookSettings

STEPS = st.lists(st.one_of(st.integers(0, 3), st.sampled_from(["undo", "redo"])), max_size=40)


@given(steps=STEPS)
def test_it_is_two_stacks(steps: list[int | str]) -> None:
    history, past, now, future = History(0), [], 0, []
    for step in steps:
        if step == "undo":
            history.undo()
            if past:
                future.append(now)
                now = past.pop()
        elif step == "redo":
            history.redo()
            if future:
                past.append(now)
                now = future.pop()
        else:
            history.push(int(step))
            if step != now:
                past.append(now)
                now, future = int(step), []
        assert (history.now, history.can_undo, history.can_redo) == (now, bool(past), bool(future))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.integers(0, 5))
def test_a_drag_is_one_step_or_none(values: list[int], following: int) -> None:
    history = History(0)
    history.push(9)
    for value in values:
        history.push(value, drag="opacity")
    history.settle()
    assert history.now == values[-1]
    assert history.undo() == 9
    assert history.undo() == 0
    assert not history.can_undo
    history.redo()
    history.redo()
    history.push(following, drag="opacity")
    assert history.undo() == (values[-1] if following != values[-1] else 9)


def test_a_drag_that_ends_where_it_began_is_no_step() -> None:
    history = History(1)
    for value in (2, 3, 1):
        history.push(value, drag="opacity")
    assert not history.can_undo
    history.push(4, drag="opacity")
    assert history.undo() == 1


def test_drags_of_two_controls_are_two_steps() -> None:
    history = History((0, 0))
    history.push((1, 0), drag="one")
    history.push((2, 0), drag="one")
    history.push((2, 1), drag="other")
    assert [history.undo(), history.undo()] == [(2, 0), (0, 0)]


@given(st.integers(1, 5), st.integers(0, 20))
def test_it_forgets_the_oldest(length: int, pushes: int) -> None:
    history = History(0, length)
    for value in range(1, pushes + 1):
        history.push(value)
    steps = 0
    while history.can_undo:
        history.undo()
        steps += 1
    assert steps == min(length, pushes)
    assert history.now == pushes - steps
    with pytest.raises(ValueError, match="1 or more"):
        History(0, 0)


def test_one_field_goes_back_to_its_default() -> None:
    look = LookSettings(opacity=0.5, masks=(), smoothing=0.2)
    assert changed_fields(look) == {"opacity", "masks", "smoothing"}
    assert with_default(look, "masks") == LookSettings(opacity=0.5, smoothing=0.2)
    assert with_default(look, *changed_fields(look)) == LookSettings()
    with pytest.raises(KeyError):
        with_default(look, "unknown")

"""The budget steps down in the written order, back in the reverse, and never swings."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rt.budget import STEPS, Budget, BudgetOptions

SECOND_NS = 1_000_000_000
AGES = st.lists(st.floats(0, 300, allow_nan=False), max_size=80)


@given(AGES)
def test_steps_come_in_order_one_at_a_time_and_no_sooner_than_held(ages_ms: list[float]) -> None:
    options, budget = BudgetOptions(), Budget(BudgetOptions())
    stack: list[str] = []
    last_ns = 0
    for second, age_ms in enumerate(ages_ms):
        change = budget.update(age_ms, second * SECOND_NS)
        if change is not None:
            assert change.at_ns - last_ns >= (options.hold_ns if change.given_up else options.back_hold_ns)
            last_ns = change.at_ns
            if change.given_up:
                assert age_ms > options.budget_ms
                stack.append(change.step)
            else:
                assert age_ms < options.budget_ms * options.back_at
                assert stack.pop() == change.step
        assert budget.given_up == tuple(stack) == STEPS[: len(stack)]


@given(st.lists(st.floats(70, 100), max_size=60))
def test_between_the_two_limits_nothing_changes(ages_ms: list[float]) -> None:
    budget = Budget(BudgetOptions())
    assert [budget.update(age_ms, second * SECOND_NS) for second, age_ms in enumerate(ages_ms)] == [None] * len(ages_ms)


def test_a_line_that_is_always_late_gives_up_all_and_then_rests_until_it_is_fast_again() -> None:
    budget = Budget(BudgetOptions())
    late = [budget.update(150, second * SECOND_NS) for second in range(20)]
    assert [change.step for change in late if change is not None] == list(STEPS)
    early = [budget.update(20, second * SECOND_NS) for second in range(20, 70)]
    assert [change.step for change in early if change is not None] == list(reversed(STEPS))
    assert budget.given_up == ()


def test_one_late_moment_changes_nothing() -> None:
    budget = Budget(BudgetOptions())
    assert all(budget.update(500 if second % 2 else 80, second * SECOND_NS) is None for second in range(60))


def test_a_step_that_is_dearer_than_what_is_spare_comes_back_less_and_less_often() -> None:
    """With it 150 ms, without it 50: it never can stay."""
    budget, backs = Budget(BudgetOptions(), ["it"]), []
    for second in range(1200):
        change = budget.update(50 if budget.given_up else 150, second * SECOND_NS)
        if change is not None and not change.given_up:
            backs.append(second)
    waits = [after - before for before, after in pairwise(backs)]
    assert waits[:4] == sorted(waits[:4])
    assert waits[3] > 4 * waits[0]
    assert len(backs) < 12


def test_a_step_that_stayed_is_no_mistake() -> None:
    budget, seconds = Budget(BudgetOptions(), ["it"]), iter(range(10_000))

    def until_change(age_ms: float) -> int:
        return next(n for n, second in enumerate(seconds) if budget.update(age_ms, second * SECOND_NS) is not None)

    waits = []
    for _ in range(4):
        until_change(150)
        waits.append(until_change(20))
        for _ in range(100):  # all is well for long
            assert budget.update(50, next(seconds) * SECOND_NS) is None
    assert len(set(waits)) == 1


@pytest.mark.parametrize("wrong", [{"budget_ms": 0}, {"back_at": 1.0}, {"hold_ns": -1}])
def test_options_that_mean_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"was given|is "):
        BudgetOptions(**wrong)  # type: ignore[arg-type]

"""The name of an engine: equal for equal inputs, another for any difference, readable."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.build.key import PRECISIONS, EngineKey, InputProfile, capability, parse_target
from engines.errors import ModelError

words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=12)
shapes = st.lists(st.integers(1, 4096), min_size=0, max_size=4).map(tuple)
profiles = st.builds(InputProfile, words, shapes, shapes, shapes)
keys = st.builds(
    EngineKey,
    model_sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
    runtime=st.sampled_from(["rtx", "tensorrt"]),
    runtime_version=words,
    targets=st.lists(st.sampled_from(["sm_75", "sm_86", "sm_89", "sm_120"]), max_size=4).map(tuple),
    precision=st.sampled_from(PRECISIONS),
    profiles=st.lists(profiles, max_size=3, unique_by=lambda profile: profile.name).map(tuple),
    flags=st.lists(words, max_size=3).map(tuple),
    driver=st.one_of(st.just(""), words),
)


@given(keys)
@settings(deadline=None)
def test_a_key_survives_json(key: EngineKey) -> None:
    read = EngineKey.from_dict(json.loads(json.dumps(key.to_dict())))
    assert read == key
    assert read.hex == key.hex
    assert len(key.hex) == 64


@given(keys, st.randoms())
@settings(deadline=None)
def test_order_and_repetition_say_nothing(key: EngineKey, random) -> None:
    def shuffled(values: tuple) -> tuple:
        return tuple(random.sample(values, len(values)))

    other = replace(
        key, targets=shuffled(key.targets + key.targets), flags=shuffled(key.flags + key.flags), profiles=shuffled(key.profiles)
    )
    assert other.hex == key.hex


@given(keys, keys)
@settings(deadline=None)
def test_keys_that_differ_have_other_names(one: EngineKey, other: EngineKey) -> None:
    assert (one.hex == other.hex) == (one == other)


@given(keys, st.data())
@settings(deadline=None)
def test_every_field_counts(key: EngineKey, data: st.DataObject) -> None:
    """A field that is added later and forgotten in the name would fail here."""
    name = data.draw(st.sampled_from([field.name for field in fields(EngineKey)]))
    value = data.draw(st.integers(2, 9)) if name == "schema" else getattr(data.draw(keys), name)
    changed = replace(key, **{name: value})
    assert (changed.hex == key.hex) == (getattr(changed, name) == getattr(key, name))


def test_a_name_does_not_change_from_one_version_to_the_next() -> None:
    """Would make every user build again: raise SCHEMA on purpose if that is meant."""
    profile = InputProfile("image", (1, 192, 192, 3), (1, 192, 192, 3), (8, 192, 192, 3))
    key = EngineKey("0" * 64, "rtx", "1.7.1.116", ("sm_89", "sm_86"), "fp16", (profile,), ("optimization_level=3",))
    assert key.hex == PINNED


PINNED = "3b07bef01db2dea21cd9c102c4c46717f5efa272ed8b69b53385cf32be7c3b0c"


@pytest.mark.parametrize(
    "wrong", [{"model_sha256": "abc"}, {"model_sha256": "G" * 64}, {"precision": "fp4"}, {"runtime_version": ""}], ids=str
)
def test_what_cannot_be_keyed_is_refused(wrong: dict) -> None:
    right = {"model_sha256": "0" * 64, "runtime": "rtx", "runtime_version": "1", "targets": (), "precision": "fp32", "profiles": ()}
    with pytest.raises(ModelError):
        EngineKey(**{**right, **wrong})


TARGETS = {"sm_86": "sm_86", "SM86": "sm_86", "8.6": "sm_86", " 120 ": "sm_120", "12.0": "sm_120"}


@pytest.mark.parametrize(("text", "target"), TARGETS.items())
def test_targets_are_read_as_people_write_them(text: str, target: str) -> None:
    assert parse_target(text) == target
    assert capability(target) == int(target[3:])


@pytest.mark.parametrize("text", ["", "ada", "sm_", "rtx4090", "8", "sm_8.6.1"])
def test_a_target_that_is_none_says_how_to_write_one(text: str) -> None:
    with pytest.raises(ModelError, match="sm_86"):
        parse_target(text)

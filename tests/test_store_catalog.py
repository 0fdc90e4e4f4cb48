"""The catalogue that ships, and what a catalogue must be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.models import Offer, entry_row
from engines.errors import ModelError
from engines.family import Kind
from engines.store.catalog import Commercial, load_catalog

NAMES = [
    "inswapper_128", "inswapper_128_fp16", "hyperswap_1a_256", "hyperswap_1b_256", "hyperswap_1c_256", "simswap_256",
    "simswap_unofficial_512", "ghost_1_256", "ghost_2_256", "ghost_3_256", "hififace_unofficial_256", "uniface_256",
    "blendswap_256", "cscs_256", "cscs_arcface_model", "cscs_id_adapter",
    "crossface_simswap", "crossface_ghost", "crossface_hififace", "arcface_w600k_r50", "scrfd_2.5g",
    "retinaface_10g", "yoloface_8n", "yunet_2023_mar", "2dfan4", "peppa_wutz", "fan_68_5", "2d106det", "1k3d68", "gfpgan_1.2",
    "gfpgan_1.3", "gfpgan_1.4", "codeformer", "gpen_bfr_256", "gpen_bfr_512", "gpen_bfr_1024", "gpen_bfr_2048",
    "restoreformer_plus_plus", "xseg_1", "xseg_2", "xseg_3", "bisenet_resnet_18", "bisenet_resnet_34",
]  # fmt: skip

ENTRY = """
[publishers.p]
name = "P"
addresses = ["https://example.org/{tag}/{file}"]
[licences.l]
commercial = "yes"
terms = "free"
[models.a]
family = "f"
kind = "swapper"
file = "a.onnx"
publisher = "p"
licence = "l"
"""


def test_the_known_models_are_there() -> None:
    catalog = load_catalog()
    assert {entry.name for entry in catalog} == set(NAMES)
    for entry in catalog:
        assert entry.file == f"{entry.name}.onnx"
        assert isinstance(entry.kind, Kind)
        assert entry.licence.terms
        assert entry.sha256 is None or re.fullmatch("[0-9a-f]{64}", entry.sha256)
        assert all(address.startswith("https://") and address.endswith(f"/{entry.file}") for address in entry.addresses)
        assert entry.sha256 or entry.crc32_beside or not entry.addresses


def test_hashes_that_are_known_in_part_name_one_model_each() -> None:
    shorts = [(short, entry.name) for entry in load_catalog() for short in entry.sha256_short]
    assert len({short for short, _ in shorts}) == len(shorts) >= 14
    for short, name in shorts:
        begin, _, end = short.partition("…")
        whole = begin + "0" * (64 - len(begin) - len(end)) + end
        found = load_catalog().by_sha256(whole)
        assert found is not None
        assert found.name == name
        assert load_catalog().by_sha256(whole[:-1] + "x") is None


@pytest.mark.parametrize("short", ["e4a3f08ce16af", "e4a3f08c…", "e4a3…e16af", "E4A3F08C…E16AF"])
def test_a_shortened_hash_that_says_too_little_is_refused(tmp_path: Path, short: str) -> None:
    (tmp_path / "c.toml").write_text(ENTRY + f'sha256_short = ["{short}"]\n', encoding="utf-8")
    with pytest.raises(ModelError, match="shortened hash"):
        load_catalog(tmp_path / "c.toml")


def test_what_must_not_be_sold_says_so() -> None:
    catalog = load_catalog()
    for name in ("inswapper_128", "inswapper_128_fp16", "arcface_w600k_r50", "scrfd_2.5g", "retinaface_10g", "2d106det", "1k3d68"):
        assert catalog[name].licence.commercial == Commercial.NO
        assert "non-commercial research only" in catalog[name].licence.terms


def test_what_nobody_checked_is_said_to_be_unverified() -> None:
    """Silence counts as unverified."""
    catalog = load_catalog()
    assert catalog["inswapper_128"].unverified == ()
    assert catalog["hyperswap_1a_256"].unverified == ("licence",)
    assert catalog["gfpgan_1.4"].unverified == ("licence", "origin")
    assert entry_row(catalog["gfpgan_1.4"])["unverified"] == ["licence", "origin"]
    assert "Licence (not verified by ffrt: ask the publisher): Apache-2.0" in Offer(catalog["gfpgan_1.4"], None).describe()
    assert "not verified" not in Offer(catalog["inswapper_128"], None).describe()


def test_addresses_are_the_publishers() -> None:
    assert load_catalog()["hififace_unofficial_256"].addresses == (
        "https://github.com/facefusion/facefusion-assets/releases/download/models-3.1.0/hififace_unofficial_256.onnx",
        "https://huggingface.co/facefusion/models-3.1.0/resolve/main/hififace_unofficial_256.onnx",
    )


def test_a_wrong_name_brings_near_ones() -> None:
    with pytest.raises(ModelError, match="did you mean inswapper_128"):
        load_catalog()["inswaper_128"]
    with pytest.raises(ModelError, match="ffrt models list"):
        load_catalog()["zzz"]


def test_a_small_catalogue(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(ENTRY + f'tag = "t"\nsha256 = "{"a" * 64}"\n')
    catalog = load_catalog(tmp_path / "c.toml")
    entry = catalog["a"]
    assert catalog.by_sha256("a" * 64) is entry
    assert catalog.by_sha256("b" * 64) is None
    assert (entry.addresses, entry.mirror_path) == (("https://example.org/t/a.onnx",), "t/a.onnx")


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "",
        ENTRY.replace('kind = "swapper"', 'kind = "nose"'),
        ENTRY.replace('licence = "l"', 'licence = "m"'),
        ENTRY.replace('publisher = "p"', 'publisher = "q"'),
        ENTRY.replace('file = "a.onnx"', 'file = "../a.onnx"'),
        ENTRY.replace('commercial = "yes"', 'commercial = "perhaps"'),
        ENTRY + 'colour = "red"\n',
        ENTRY + 'verified = ["size"]\n',
        ENTRY + 'verified = "licence"\n',
    ],
)
def test_a_catalogue_that_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(ModelError, match=r"c\.toml cannot be used"):
        load_catalog(tmp_path / "c.toml")


def test_a_missing_catalogue_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="install ffrt again"):
        load_catalog(tmp_path / "none.toml")

"""What a file is: by its hash, else by its graph, else said plainly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from onnx import TensorProto, helper
from standins.gfpgan import gfpgan
from standins.swappers import Contract, swapper
from store_files import EIGHT, Published, SquareFamily, families, model_bytes, model_proto, sha256, write
from test_store_graph import external_model

from engines.errors import ModelError
from engines.family import Kind
from engines.family import families as known_families
from engines.store.catalog import Catalog, load_catalog
from engines.store.identify import ToldBy, identify

NOTHING = Catalog([])


def put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_the_hash_is_asked_first(tmp_path: Path) -> None:
    """Also where no family fits or several do."""
    data = model_bytes(size=5)
    entry = Published(data, name="known", family="fives").entry()
    found = identify(put(tmp_path / "renamed.onnx", data), Catalog([entry]), families(**EIGHT))
    assert (found.name, found.family, found.kind, found.entry) == ("known", "fives", "swapper", entry)
    assert found.sha256 == sha256(data)


def test_the_beginning_and_the_end_of_a_hash_will_do(tmp_path: Path) -> None:
    """Where no more was found in writing; what it says of the graph must be so, for such a hash alone is not believed."""
    data = model_bytes(size=8)
    short = f"{sha256(data)[:8]}…{sha256(data)[-4:]}"
    path = put(tmp_path / "from somewhere.onnx", data)
    entry = Published(data, name="known", family="eight", extra={"sha256_short": ("00000000…0000", short)}).entry(by="crc32")
    found = identify(path, Catalog([entry]), families(**EIGHT))
    assert (found.name, found.family, found.entry, found.told_by) == ("known", "eight", entry, ToldBy.HASH)
    other = Published(data, name="known", family="sixteen", extra={"sha256_short": (short,)}).entry(by="crc32")
    found = identify(path, Catalog([other]), families(**EIGHT))
    assert (found.family, found.told_by) == ("eight", ToldBy.GRAPH)


@pytest.mark.parametrize(("size", "family", "kind"), [(8, "eight", "swapper"), (16, "sixteen", "enhancer")])
def test_the_graph_tells_the_family(tmp_path: Path, size: int, family: str, kind: str) -> None:
    found = identify(put(tmp_path / "mine.dfm", model_bytes(size=size)), NOTHING, families(**EIGHT))
    assert (found.name, found.family, found.kind, found.entry) == ("mine", family, kind, None)


def test_a_name_tells_nothing_that_the_graph_says_otherwise(tmp_path: Path) -> None:
    entry = Published(model_bytes(size=16), file="sixteen.onnx", name="sixteen", family="sixteen").entry()
    found = identify(put(tmp_path / "sixteen.onnx", model_bytes(size=8)), Catalog([entry]), families(**EIGHT))
    assert (found.family, found.told_by) == ("eight", ToldBy.GRAPH)


def test_several_families_need_a_word(tmp_path: Path) -> None:
    """And the words to type are there, ready to be copied."""
    known = families(**EIGHT, alike=SquareFamily(8, Kind.SWAPPER))
    path = put(tmp_path / "my file.onnx", model_bytes())
    wanted = rf"fits several families \(alike, eight\).*; type `ffrt models import '{path}' --family alike`, or eight in place of alike"
    with pytest.raises(ModelError, match=wanted):
        identify(path, NOTHING, known)
    found = identify(path, NOTHING, known, family="eight")
    assert (found.family, found.told_by) == ("eight", ToldBy.USER)


def test_between_several_families_the_name_decides(tmp_path: Path) -> None:
    known = families(**EIGHT, alike=SquareFamily(8, Kind.SWAPPER))
    for name, family in (("Alike-v1.4", "alike"), ("my_EIGHT", "eight")):
        found = identify(put(tmp_path / f"{name}.onnx", model_bytes()), NOTHING, known)
        assert (found.family, found.told_by) == (family, ToldBy.NAME)
    with pytest.raises(ModelError, match="fits several families"):
        identify(put(tmp_path / "alike_or_eight.onnx", model_bytes()), NOTHING, known)


@dataclass(frozen=True)
class NamedFamily(SquareFamily):
    input_names: frozenset[str] = frozenset({"target", "source"})


def test_between_several_families_the_inputs_names_decide(tmp_path: Path) -> None:
    """Before the file's own; a family that names its inputs otherwise says nothing, and two that name them so are told apart as ever."""
    known = families(**EIGHT, named=NamedFamily(8), other=NamedFamily(8, input_names=frozenset({"x", "y"})))
    for name in ("mine", "other", "eight"):
        found = identify(put(tmp_path / f"{name}.onnx", model_bytes()), NOTHING, known)
        assert (found.family, found.told_by) == ("named", ToldBy.GRAPH)
    known = families(**EIGHT, named=NamedFamily(8), alike=NamedFamily(8))
    with pytest.raises(ModelError, match=r"fits several families \(alike, eight, named\)"):
        identify(tmp_path / "mine.onnx", NOTHING, known)
    assert identify(tmp_path / "mine.onnx", NOTHING, known, family="eight").told_by is ToldBy.USER


def test_between_kinds_decides_what_it_is_wanted_for(tmp_path: Path) -> None:
    known = families(**EIGHT, alike=SquareFamily(8, Kind.MASK))
    path = put(tmp_path / "mine.onnx", model_bytes())
    for kind, family in ((Kind.SWAPPER, "eight"), (Kind.MASK, "alike")):
        found = identify(path, NOTHING, known, kind=kind)
        assert (found.family, found.told_by) == (family, ToldBy.GRAPH)
    assert identify(path, NOTHING, known, kind=Kind.DETECTOR).kind in ("swapper", "mask"), "the caller says that it is the wrong one"


PEOPLES = {
    "GFPGANv1.4": "gfpgan", "gfpgan-1.4": "gfpgan", "GPEN-BFR-512": "gpen", "gpen_bfr_512": "gpen",
    "RestoreFormerPlusPlus": "restoreformer", "restoreformer_plus_plus": "restoreformer",
    "simswap_256": "simswap", "ghost_unet_1_block": "ghost", "ghost_3_256": "ghost", "hififace_unofficial_256": "hififace",
}  # fmt: skip
"""Names that such files go by → family."""


@pytest.mark.parametrize("name", PEOPLES)
def test_names_that_people_s_files_have(name: str, tmp_path: Path) -> None:
    """With nothing in the catalogue; restorers of 512 pixels have one graph, as swappers of 256 that take an embedding."""
    family = PEOPLES[name]
    path = tmp_path / f"{name}.onnx"
    gfpgan(path) if family in ("gfpgan", "gpen", "restoreformer") else swapper(path, Contract(256))
    found = identify(path, NOTHING, known_families)
    assert (found.family, found.told_by) == (family, ToldBy.NAME)


CSCS = Contract(256, inputs=("input_1", "input_2"))

NAMED = "its inputs are called target and source, not input_1 and input_2"

OTHERS: dict[str, tuple[Contract, str]] = {
    "ghost_1_256": (Contract(256), NAMED),
    "hyperswap_1a_256": (Contract(256, mask=True, outputs=("output", "mask")), NAMED),
    "inswapper_256": (Contract(256, emap=True), NAMED),
    "simswap_unofficial_512": (Contract(512), "its target input is [1, 3, 512, 512], not [any, 3, 256, 256]"),
    "uniface_256": (Contract(256, source_side=256), "it has no source input"),
    "blendswap_256": (Contract(256, source_side=112), "it has no source input"),
}
"""Files of other swappers, by names that people's have; and what of each keeps it from being CSCS."""


@pytest.mark.parametrize("name", ["mine", "cscs_256", "ghost of mine"])
@pytest.mark.parametrize("emap", [False, True])
def test_cscs_is_told_by_its_graph(name: str, emap: bool, tmp_path: Path) -> None:
    """Also where its last layer looks as inswapper's emap does."""
    found = identify(swapper(tmp_path / f"{name}.onnx", replace(CSCS, emap=emap)), NOTHING, known_families)
    assert (found.family, found.kind, found.told_by) == ("cscs", "swapper", ToldBy.GRAPH)


@pytest.mark.parametrize("name", OTHERS)
def test_no_other_swapper_s_file_is_cscs(name: str, tmp_path: Path) -> None:
    """Not even with its inputs called the same, where anything else differs."""
    contract, but = OTHERS[name]
    path = swapper(tmp_path / f"{name}.onnx", contract if but == NAMED else replace(contract, inputs=CSCS.inputs))
    assert name.startswith(identify(path, NOTHING, known_families).family)
    with pytest.raises(ModelError) as caught:
        identify(path, NOTHING, known_families, family="cscs")
    assert "is not of the family cscs: " in str(caught.value)
    assert but in str(caught.value)


def test_the_catalogue_s_own_names_decide() -> None:
    alike = ({"gfpgan", "gpen", "restoreformer"}, {"simswap", "ghost", "hififace"})
    for entry in load_catalog():
        for families_alike in alike:
            if entry.family in families_alike:
                words = [word for word in families_alike if word in entry.file]
                assert words == [entry.family], entry.file


def test_the_word_must_fit(tmp_path: Path) -> None:
    path = put(tmp_path / "mine.onnx", model_bytes())
    with pytest.raises(ModelError, match=r"not of the family sixteen: its first input is \[batch, 3, 8, 8\], not \[any, 3, 16, 16\]"):
        identify(path, NOTHING, families(**EIGHT), family="sixteen")
    with pytest.raises(ModelError, match="no family is called 'nine'; known are: eight, sixteen"):
        identify(path, NOTHING, families(**EIGHT), family="nine")


def test_an_unknown_graph_is_described(tmp_path: Path) -> None:
    known = families(near=SquareFamily(8), far=SquareFamily(16, dtypes=("float16",)))
    with pytest.raises(ModelError) as caught:
        identify(put(tmp_path / "mine.onnx", model_bytes(size=9)), NOTHING, known)
    text = str(caught.value)
    assert "target float32[batch, 3, 9, 9], source float32[1, 4] → output float32[batch, 3, 9, 9] (opset 17)" in text
    assert "the nearest family is near, but its first input is [batch, 3, 9, 9], not [any, 3, 8, 8]" in text


ALMOST = {
    "almost.dfm": ((1, 224, 224, 3), "dfm", "it has 1 input and 1 output, not a face (and a morph value) in and three out"),
    "new inswapper.onnx": ((1, 3, 128, 128), "inswapper", "it has 1 input and 1 output, not a source and a target"),
    "mine.onnx": ((1, 3, 96, 96), "gfpgan", "its picture has a side of 96, not of 512"),
}
"""File name → shape of its only input and output; what is nearest, and why it is not that."""


@pytest.mark.parametrize("name", ALMOST)
def test_the_nearest_of_the_real_families(name: str, tmp_path: Path) -> None:
    """What the name names, else what has as many tensors."""
    shape, nearest, but = ALMOST[name]
    pixels, same = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("pixels", "same"))
    graph = helper.make_graph([helper.make_node("Relu", ["pixels"], ["same"])], "g", [pixels], [same])
    path = write(tmp_path / name, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    with pytest.raises(ModelError) as caught:
        identify(path, NOTHING, known_families)
    assert f"the nearest family is {nearest}, but {but}" in str(caught.value)


def test_without_families_it_is_described_all_the_same(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"target float32.*knows no families"):
        identify(put(tmp_path / "mine.onnx", model_bytes()), NOTHING, families())


def test_weights_elsewhere_are_not_covered_by_the_hash(tmp_path: Path) -> None:
    (tmp_path / "w.data").write_bytes(bytes(16))
    with pytest.raises(ModelError, match=r"w\.data; save the model as one file"):
        identify(write(tmp_path / "a.onnx", external_model("w.data")), NOTHING, families(**EIGHT))


def test_no_model_is_no_family(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="not an ONNX model"):
        identify(put(tmp_path / "a.onnx", b"text " * 20), NOTHING, families(**EIGHT))
    assert identify(write(tmp_path / "a.onnx", model_proto()), NOTHING, families(**EIGHT)).family == "eight"

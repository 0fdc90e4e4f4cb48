"""Presets: looks that are kept by name, as TOML files that people may edit and pass on. They never hold a stream's key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, Field, field_validator

from app.documents import check_version, checked
from app.errors import GalleryError, PresetError
from app.files import locked, read_text, write_atomically
from app.folders import config_folder
from app.settings import EncoderName, InputSettings, LookSettings, OutputSettings, PeopleSettings, PersonSettings, Settings, SourceSettings
from rt.address import shown
from rt.options import Wear

if TYPE_CHECKING:
    from app.gallery import Gallery

VERSION = 1
VERSION_KEY = "ffrt_preset"

NAME_BYTES_MAX = 200
"""Of a name as a file's name; file systems take 255, some of which temporary files need."""

BYTES_MAX = 1 << 20
"""A preset is a few hundred bytes; what is larger is something else."""


class OutputPreset(BaseModel):
    """Outputs without secrets: streams are named as the address book has them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    addresses: tuple[str, ...] = ()
    virtual_camera: str | None = None
    record: Path | None = None
    overwrite: bool = False
    null: bool = False
    bitrate_bps: int | None = Field(None, ge=50_000, le=200_000_000)
    encoder: EncoderName = "auto"


class SourcePreset(BaseModel):
    """The face to wear: one of the gallery by its name, so that it is found on another machine too; else photos."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    identity: str | None = None
    """Name of a face of the gallery."""
    id: str | None = None
    """Its id: on the machine where it was saved it is found under another name as well."""
    photos: tuple[Path, ...] = ()
    """Photos of one person that are in no gallery."""
    face: int | None = Field(None, ge=1)

    @classmethod
    def of(cls, source: SourceSettings, gallery: Gallery | None) -> Self:
        """``gallery``: where its name is looked for; photos stay photos otherwise."""
        found = None if gallery is None else gallery.wearing(source)
        if found is None:
            return cls(photos=tuple(photo.absolute() for photo in source.photos), face=source.face)
        return cls(identity=found.name, id=found.id, face=source.face)

    def worn(self, gallery: Gallery) -> SourceSettings:
        """Raises ``PresetError`` for a face or photo that is not here: without it the face that is filmed would be seen."""
        if self.identity is not None:
            return gallery_face(self, gallery)
        missing = next((photo for photo in self.photos if not photo.is_absolute()), None)
        if missing is not None:
            raise PresetError(
                f"the preset wears the photo {missing}, which is not here; put it beside the preset's file, and import that again"
            )
        return SourceSettings(photos=self.photos, face=self.face)

    def anchored(self, folder: Path) -> Self:
        """As ``Preset.anchored``."""
        return self.model_copy(update={"photos": tuple(_found(photo, folder) for photo in self.photos)})

    def portable(self, folder: Path, gallery: Gallery) -> SourcePreset:
        """As ``Preset.portable``."""
        if self.identity is not None:
            return self
        named = SourcePreset.of(SourceSettings(photos=self.photos, face=self.face), gallery)
        return named.model_copy(update={"photos": tuple(Path(_passed_on(str(one), folder)) for one in named.photos)})


class PersonPreset(BaseModel):
    """What one of the people filmed gets."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int = Field(ge=1)
    wear: Wear = Wear.SWAP
    source: SourcePreset | None = None


class PeoplePreset(BaseModel):
    """Whose face is swapped, and who wears which, as ``app.settings.PeopleSettings``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    others: Wear = Wear.SWAP
    each: tuple[SourcePreset, ...] = ()
    named: tuple[PersonPreset, ...] = ()
    recogniser: str | None = None

    @field_validator("named")
    @classmethod
    def _each_once(cls, value: tuple[PersonPreset, ...]) -> tuple[PersonPreset, ...]:
        PeopleSettings(named=tuple(PersonSettings(number=one.number) for one in value))
        return value

    @classmethod
    def of(cls, people: PeopleSettings, gallery: Gallery | None) -> Self:
        """``gallery``: as in ``SourcePreset.of``."""
        named = tuple(
            PersonPreset(number=one.number, wear=one.wear, source=None if one.source is None else SourcePreset.of(one.source, gallery))
            for one in people.named
        )
        each = tuple(SourcePreset.of(source, gallery) for source in people.each)
        return cls(others=people.others, each=each, named=named, recogniser=people.recogniser)

    def settings(self, gallery: Callable[[], Gallery]) -> PeopleSettings:
        """``gallery``: asked for where a face is to be found in it. Raises ``PresetError`` as ``SourcePreset.worn``."""
        return PeopleSettings(
            others=self.others,
            each=tuple(source.worn(gallery()) for source in self.each),
            named=tuple(
                PersonSettings(number=one.number, wear=one.wear, source=None if one.source is None else one.source.worn(gallery()))
                for one in self.named
            ),
            recogniser=self.recogniser,
        )

    def moved(self, move: Callable[[SourcePreset], SourcePreset]) -> Self:
        """With every face as ``move`` makes it."""
        named = tuple(one if one.source is None else one.model_copy(update={"source": move(one.source)}) for one in self.named)
        return self.model_copy(update={"each": tuple(map(move, self.each)), "named": named})


class Preset(BaseModel):
    """The look, and what else was asked to be kept with it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    look: LookSettings = LookSettings()
    source: SourcePreset | None = None
    people: PeoplePreset | None = None
    input: InputSettings | None = None
    output: OutputPreset | None = None

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        source: bool = False,
        people: bool = False,
        input: bool = False,
        output: bool = False,
        addresses: Sequence[str] = (),
        gallery: Gallery | None = None,
    ) -> Self:
        """The look of ``settings``, with the other parts that are asked for. ``addresses``: names of the streams in the address book.
        ``gallery``: where the name of the face is looked for; its photos are kept by their places otherwise.

        Streams themselves are left out: they hold keys. Raises ``PresetError`` for an input whose address may hold a secret.
        """
        if input and shown(settings.input.spec) != settings.input.spec:
            raise PresetError(f"the input {shown(settings.input.spec)} may hold a secret; save the preset without its input")
        kept = settings.output.model_dump(exclude={"streams"})
        return cls(
            look=settings.look,
            source=SourcePreset.of(settings.source, gallery) if source else None,
            people=PeoplePreset.of(settings.people, gallery) if people else None,
            input=settings.input if input else None,
            output=OutputPreset(addresses=tuple(addresses), **kept) if output else None,
        )

    def applied(self, settings: Settings, address: Callable[[str], str], gallery: Gallery | None = None) -> Settings:
        """``settings`` with the parts that the preset holds. ``address``: name → whole address (``AddressBook.url``); may raise.

        ``gallery``: the user's otherwise. Raises ``PresetError`` for a face that is not here.
        """
        parts: dict[str, Any] = {"look": self.look}
        if self.input is not None:
            parts["input"] = self.input
        if self.output is not None:
            streams = tuple(address(name) for name in self.output.addresses)
            parts["output"] = OutputSettings(streams=streams, **self.output.model_dump(exclude={"addresses"}))
        here = cache(lambda: gallery or _gallery())
        applied = settings.model_copy(update=parts)
        if self.source is not None:
            applied = applied.wearing(self.source.worn(here()))
        return applied if self.people is None else applied.model_copy(update={"people": self.people.settings(here)})

    def to_toml(self) -> str:
        """TOML knows no null: what is not set is left out."""
        import tomli_w

        return tomli_w.dumps({VERSION_KEY: VERSION, **self.model_dump(mode="json", exclude_none=True)})

    @classmethod
    def from_toml(cls, text: str, place: Path | str) -> Self:
        """Raises ``PresetError`` with one sentence that names ``place``."""
        try:
            facts = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise PresetError(f"{place} is not valid TOML ({error}); mend or remove it") from None
        check_version(facts, VERSION_KEY, VERSION, place, PresetError)
        del facts[VERSION_KEY]
        return checked(cls, facts, place, PresetError)

    def anchored(self, folder: Path) -> Self:
        """With the photos and the video that lie in ``folder``, where the preset's file is, found there."""
        changes: dict[str, Any] = {}
        if self.source is not None:
            changes["source"] = self.source.anchored(folder)
        if self.people is not None:
            changes["people"] = self.people.moved(lambda source: source.anchored(folder))
        if self.input is not None:
            spec = str(_found(Path(self.input.spec), folder)) if "://" not in self.input.spec else self.input.spec
            changes["input"] = self.input.model_copy(update={"spec": spec})
        return self.model_copy(update=changes)

    def portable(self, folder: Path, gallery: Gallery) -> Self:
        """To lie in ``folder`` and be passed on: a face by its name in the gallery, files by where they are from there or by name alone."""
        look = {name: _passed_on(value, folder) for name, value in self.look.model_dump(mode="json").items()}
        changes: dict[str, Any] = {"look": LookSettings.model_validate(look)}
        if self.source is not None:
            changes["source"] = self.source.portable(folder, gallery)
        if self.people is not None:
            people = self.people.moved(lambda source: source.portable(folder, gallery))
            changes["people"] = people.model_copy(update={"recogniser": _passed_on(people.recogniser, folder)})
        if self.input is not None:
            changes["input"] = self.input.model_copy(update={"spec": _input_passed_on(self.input.spec, folder)})
        if self.output is not None and self.output.record is not None:
            changes["output"] = self.output.model_copy(update={"record": Path(_passed_on(str(self.output.record), folder))})
        return self.model_copy(update=changes)


def gallery_face(source: SourcePreset, gallery: Gallery) -> SourceSettings:
    """The face that ``source`` names. Raises ``PresetError`` where it is not in the gallery, or has no photo left."""
    for name in filter(None, (source.id, source.identity)):
        try:
            return gallery.find(name).source.model_copy(update={"face": source.face})
        except GalleryError as error:
            problem = error
    raise PresetError(f"the preset cannot be worn: {problem}")


def _gallery() -> Gallery:
    """The user's; loaded late, as it looks at photos."""
    from app.gallery import Gallery

    return Gallery()


def _found(path: Path, folder: Path) -> Path:
    place = (folder / path).absolute()
    return place if not path.is_absolute() and str(path) != "." and place.is_file() else path


def _passed_on(value: Any, folder: Path) -> Any:
    """A path as it is seen from ``folder`` where it lies in there, else its last part; anything else as it is."""
    if isinstance(value, list):
        return [_passed_on(one, folder) for one in value]
    if not isinstance(value, str) or not ("/" in value or "\\" in value):
        return value
    family, separator, place = value.rpartition(":") if re.match(r"\w{2,}:", value) else ("", "", value)
    path = Path(place)
    inside = path.is_absolute() and path.is_relative_to(folder.absolute())
    short = path.relative_to(folder.absolute()).as_posix() if inside else re.split(r"[/\\]", place)[-1]
    return f"{family}{separator}{short}"


def _input_passed_on(spec: str, folder: Path) -> str:
    """A camera and an address are as good elsewhere; a portrait of the synthetic camera is not."""
    if spec.startswith("synthetic:"):
        kept = (option for option in spec.partition(":")[2].split(",") if not option.startswith("portrait="))
        return "synthetic:" + ",".join(kept)
    return spec if "://" in spec or spec.startswith(("/dev/", "pipe:")) else str(_passed_on(spec, folder))


class Presets:
    """The presets of one folder. Any thread; several processes may share it. Everything raises ``PresetError`` or ``StoreError``."""

    def __init__(self, folder: Path | None = None) -> None:
        """``folder``: ``presets`` in the user's configuration otherwise. It need not exist."""
        self.folder = folder or config_folder() / "presets"

    def names(self) -> list[str]:
        """All, in order of the alphabet; one that cannot be read is among them."""
        return sorted((unquote(path.stem) for path in self.folder.glob("[!.]*.toml")), key=lambda name: (name.casefold(), name))

    def load(self, name: str) -> Preset:
        path = self.path(name)
        text = read_text(path)
        if text is None:
            raise self._unknown(name)
        return Preset.from_toml(text, path).anchored(self.folder)

    def save(self, name: str, preset: Preset, *, replace: bool = False) -> Path:
        """Returns where. A preset of that name is only replaced where ``replace`` says so, and never one of a newer ffrt."""
        path = self.path(name)
        with locked(self.folder / "presets"):
            if path.exists():
                if not replace:
                    raise PresetError(f"there is a preset {name!r} already; give another name, or say that it is to be replaced")
                self._refuse_newer(path)
            write_atomically(path, preset.to_toml().encode())
        return path

    def import_file(self, file: Path, name: str | None = None, *, replace: bool = False) -> str:
        """Takes in a file that was exported. Returns its name: ``name``, or the file's."""
        preset = Preset.from_toml(self._given(file), file).anchored(file.parent)
        chosen = name or unquote(file.stem)
        self.save(chosen, preset, replace=replace)
        return chosen

    def export(self, name: str, file: Path, *, replace: bool = False, gallery: Gallery | None = None) -> None:
        """Writes one to ``file``, to be passed on: without the folders of this machine. ``gallery``: the user's otherwise."""
        if file.exists() and not replace:
            raise PresetError(f"{file} exists; give another name, or say that it is to be replaced")
        write_atomically(file, self.load(name).portable(file.parent, gallery or _gallery()).to_toml().encode())

    def remove(self, name: str) -> bytes:
        """Returns what was in its file, for ``put_back``: also one that cannot be read can be removed, and nothing is lost."""
        with locked(self.folder / "presets"):
            try:
                kept = self.path(name).read_bytes()
                self.path(name).unlink()
            except FileNotFoundError:
                raise self._unknown(name) from None
            except OSError as error:
                raise PresetError(f"{self.path(name)} cannot be removed ({error.strerror or error}); allow it") from error
        return kept

    def put_back(self, name: str, kept: bytes) -> None:
        """What ``remove`` gave. Raises ``PresetError`` where another has that name by now."""
        path = self.path(name)
        with locked(self.folder / "presets"):
            if path.exists():
                raise PresetError(f"there is a preset {name!r} already; it stays, and the one that was removed is not put back")
            write_atomically(path, kept)

    def path(self, name: str) -> Path:
        """Where a preset of that name lies. Raises ``PresetError`` for what is no name."""
        if not name.strip() or name != name.strip() or not name.isprintable():
            raise PresetError(f"{name!r} was given as a preset's name; give printable letters, without blanks around them")
        file = quote(name, safe=" ()+,=@!&'").replace(".", "%2E").replace("~", "%7E")
        if len(file) > NAME_BYTES_MAX:
            raise PresetError(f"the preset's name {name[:20]!r}… is too long; give a shorter one")
        return self.folder / f"{file}.toml"

    def _given(self, file: Path) -> str:
        if file.is_file() and file.stat().st_size > BYTES_MAX:
            raise PresetError(f"{file} is too large for a preset; give a TOML file that `ffrt presets export` wrote")
        text = read_text(file)
        if text is None:
            raise PresetError(f"{file} does not exist; give a TOML file that `ffrt presets export` wrote")
        return text

    def _refuse_newer(self, path: Path) -> None:
        try:
            facts = tomllib.loads(read_text(path) or "")
        except tomllib.TOMLDecodeError:
            return  # broken, and asked to be replaced
        if VERSION_KEY in facts:
            check_version(facts, VERSION_KEY, VERSION, path, PresetError)

    def _unknown(self, name: str) -> PresetError:
        return PresetError(f"there is no preset {name!r}; there are: {', '.join(self.names()) or 'none yet'}")

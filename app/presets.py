"""Presets: looks that are kept by name, as TOML files that people may edit and pass on. They never hold a stream's key."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, Field

from app.documents import check_version, checked
from app.errors import PresetError
from app.files import locked, read_text, write_atomically
from app.folders import config_folder
from app.settings import InputSettings, LookSettings, OutputSettings, Settings, SourceSettings
from rt.address import shown

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


class Preset(BaseModel):
    """The look, and what else was asked to be kept with it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    look: LookSettings = LookSettings()
    source: SourceSettings | None = None
    input: InputSettings | None = None
    output: OutputPreset | None = None

    @classmethod
    def of(
        cls, settings: Settings, *, source: bool = False, input: bool = False, output: bool = False, addresses: Sequence[str] = ()
    ) -> Self:
        """The look of ``settings``, with the other parts that are asked for. ``addresses``: names of the streams in the address book.

        Streams themselves are left out: they hold keys. Raises ``PresetError`` for an input whose address may hold a secret.
        """
        if input and shown(settings.input.spec) != settings.input.spec:
            raise PresetError(f"the input {shown(settings.input.spec)} may hold a secret; save the preset without its input")
        kept = settings.output.model_dump(exclude={"streams"})
        return cls(
            look=settings.look,
            source=settings.source if source else None,
            input=settings.input if input else None,
            output=OutputPreset(addresses=tuple(addresses), **kept) if output else None,
        )

    def applied(self, settings: Settings, address: Callable[[str], str]) -> Settings:
        """``settings`` with the parts that the preset holds. ``address``: name → whole address (``AddressBook.url``); may raise."""
        parts: dict[str, Any] = {"look": self.look}
        if self.input is not None:
            parts["input"] = self.input
        if self.output is not None:
            streams = tuple(address(name) for name in self.output.addresses)
            parts["output"] = OutputSettings(streams=streams, **self.output.model_dump(exclude={"addresses"}))
        applied = settings.model_copy(update=parts)
        return applied if self.source is None else applied.wearing(self.source)

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
        return Preset.from_toml(text, path)

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
        preset = Preset.from_toml(self._given(file), file)
        chosen = name or unquote(file.stem)
        self.save(chosen, preset, replace=replace)
        return chosen

    def export(self, name: str, file: Path, *, replace: bool = False) -> None:
        """Writes one to ``file``."""
        if file.exists() and not replace:
            raise PresetError(f"{file} exists; give another name, or say that it is to be replaced")
        write_atomically(file, self.load(name).to_toml().encode())

    def remove(self, name: str) -> None:
        with locked(self.folder / "presets"):
            try:
                self.path(name).unlink()
            except FileNotFoundError:
                raise self._unknown(name) from None

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

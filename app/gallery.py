"""The gallery: faces a person keeps, each a folder of photos with a name, and the portraits that come with the program.

    DATA/gallery/ID/identity.json, CONTENT.jpg …, CONTENT.thumb.jpg …    a face
    DATA/gallery/.removed/ID/                                            one that may still be brought back

A photo's file is called after its content, never after what a person called it, so names may be anything that can be shown.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import threading
import time
import unicodedata
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

import cv2
import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from app.documents import check_version, checked, json_object
from app.errors import GalleryError, StoreError
from app.files import locked, read_text, write_atomically
from app.folders import data_folder
from app.photo_check import Hint, PhotoCheck, PhotoReport
from app.settings import SourceSettings
from engines.errors import PhotoError

log = logging.getLogger(__name__)

VERSION = 1
VERSION_KEY = "ffrt_identity"
DOCUMENT = "identity.json"
REMOVED = ".removed"
UNFINISHED = ".new-"

NAME_MAX = 100
"""Letters of a name: more are no name, and would not fit under a picture."""

BYTES_MAX = 256 << 20
"""Of a photo: more would fill the disk by mistake. A 200-megapixel JPEG has less than 100 MB."""

THUMBNAIL_PX = 256
"""Side of a thumbnail: 128 points on a screen of high density."""

FACE_SHARE = 0.6
"""The face's longer side as a share of its thumbnail's."""

FORGOTTEN_S = 86_400.0
"""After so long, what a program that crashed had set aside is deleted."""

CONTENT_NAME = re.compile(r"^[0-9a-f]{32}(\.[a-z0-9]{1,5})?$")
"""Of a photo's file: the first half of its SHA-256, and what the file was called at its end."""

PORTRAITS = ("hopper.jpg", "astronaut.png")
"""In the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Photo:
    """One photo of a face. Its file may have vanished or be damaged since: whoever opens it is told."""

    file: Path
    hints: tuple[Hint, ...] = ()
    """What would make a poor swap of it, as it was when it was added."""
    box: tuple[float, float, float, float] | None = None
    """Left, top, width, height of the face: shares of the upright photo's width and height."""
    called: str = ""
    """What its file was called before it was copied; empty where nobody kept that."""

    @property
    def title(self) -> str:
        """What to call it."""
        return self.called or self.file.name

    @property
    def is_there(self) -> bool:
        return self.file.is_file()


@dataclass(frozen=True, slots=True)
class Identity:
    """A face of the gallery as it was when it was asked for."""

    id: str
    """Never changes, whatever the name becomes; fit for a file's name and for a control message."""
    name: str
    photos: tuple[Photo, ...]
    favourite: bool = False
    built_in: bool = False
    """It came with the program: it can be worn, not changed."""
    problem: str = ""
    """Why it cannot be changed or used, in one sentence; empty where all is well."""

    @property
    def usable(self) -> tuple[Photo, ...]:
        """Those whose files are there."""
        return tuple(photo for photo in self.photos if photo.is_there)

    @property
    def source(self) -> SourceSettings:
        """To be worn. Raises ``GalleryError`` where no photo is left."""
        photos = tuple(photo.file for photo in self.usable)
        if not photos:
            raise GalleryError(f"no photo of {self.name!r} is left; add one, or remove the face from the gallery")
        return SourceSettings(photos=photos)


@dataclass(frozen=True, slots=True)
class Removed:
    """What ``Gallery.restore`` brings back."""

    identity: str
    name: str
    photo: Path | None = None
    """Of one photo: where it was; None where the whole face was removed."""


class Gallery:
    """Any thread; several processes may share the folder. Looking at a photo takes tenths of a second: not on a window's thread.

    Everything raises ``GalleryError`` or ``StoreError``; what is added ``PhotoError`` too.
    """

    def __init__(self, folder: Path | None = None, look_at: Callable[[Path], PhotoReport] | None = None) -> None:
        """``folder``: ``gallery`` in the user's data folder otherwise. It need not exist. ``look_at``: ``PhotoCheck.look_at`` otherwise."""
        self.folder = folder or data_folder() / "gallery"
        self._look_at = look_at
        self._looking = threading.Lock()  # of the check: one photo at a time
        self._removed: set[Path] = set()

    # --- what is there ---

    def identities(self) -> tuple[Identity, ...]:
        """All: a person's own first, favourites before the others, then those of the program. One that is damaged is among them.

        Reads a small file a face, no photo: milliseconds.
        """
        own = [(document.favourite, document.place, identity) for document, identity in self._own()]
        own.sort(key=lambda entry: (not entry[0], entry[1], entry[2].name.casefold(), entry[2].id))
        return (*(identity for _, _, identity in own), *built_in())

    def find(self, name: str) -> Identity:
        """By id or name, letter case aside. Raises ``GalleryError`` with what there is."""
        known = self.identities()
        for key in (lambda identity: identity.id == name, lambda identity: _folded(identity.name) == _folded(name)):
            for identity in known:
                if key(identity):
                    return identity
        names = ", ".join(identity.name for identity in known)
        raise GalleryError(f"no face in the gallery is called {name!r}; there are: {names}. `ffrt faces add PHOTO` adds one")

    def wearing(self, source: SourceSettings) -> Identity | None:
        """The face whose photos ``source`` names; None for other photos, for nobody, and where the gallery cannot be read."""
        photos = set(source.photos)
        try:
            known = self.identities() if photos else ()
        except StoreError as error:
            log.warning("%s", error)
            return None
        return next((identity for identity in known if photos <= {photo.file for photo in identity.photos}), None)

    def holder(self, photos: Sequence[Path]) -> Identity | None:
        """The face that has all these photos already, whatever their files are called; None where none has, or one cannot be read."""
        try:
            wanted = {_content(path.read_bytes()) for path in photos if path.stat().st_size <= BYTES_MAX}
            known = ((one, {_content_of(photo.file) for photo in one.usable}) for one in self.identities())
            return next((one for one, contents in known if len(wanted) and wanted <= contents), None)
        except OSError:
            return None

    def thumbnail(self, identity: Identity, photo: Photo | None = None) -> Path:
        """A JPEG of ``THUMBNAIL_PX`` a side that shows the face of ``photo`` (the first that is there otherwise); made where it is missing.

        Raises ``GalleryError`` or ``PhotoError`` where there is no photo to make it of.
        """
        chosen = photo or next(iter((*identity.usable, *identity.photos)), None)
        if chosen is None:
            raise GalleryError(f"no photo of {identity.name!r} is left; add one, or remove the face from the gallery")
        folder = self.folder / ".built-in" if identity.built_in else chosen.file.parent
        place = folder / f"{chosen.file.stem}.thumb.jpg"
        if not place.is_file():
            write_atomically(place, thumbnail_of(self._report(chosen.file)))
        return place

    def look_at(self, photo: Path) -> PhotoReport:
        """What is to be seen in ``photo`` now. Raises ``PhotoError``."""
        return self._report(photo)

    # --- what a person changes ---

    def add(self, photos: Sequence[Path], name: str | None = None) -> Identity:
        """Copies ``photos`` of one person. All or none: a photo without a face is refused.

        ``name``: that of the first file otherwise, numbered where it is taken. Raises ``GalleryError`` where a given name is taken.
        """
        if not photos:
            raise GalleryError("no photo was given; give one or more of one person")
        kept = [self._examined(path) for path in photos]
        key = uuid.uuid4().hex
        beside = self.folder / f"{UNFINISHED}{key}"
        with self._changing():
            document = _Document(name=self._name_for(name, photos[0]), place=self._last_place() + 1)
            try:
                document = _with_photos(document, [self._write(beside, examined) for examined in kept])
                _write_document(beside, document)
                os.replace(beside, self.folder / key)
            except OSError as error:
                raise _unwritable(self.folder, error) from error
            finally:
                shutil.rmtree(beside, ignore_errors=True)
        return document.identity(self.folder / key)

    def add_photos(self, identity: str, photos: Sequence[Path]) -> Identity:
        """Further photos of one that is there (``identity``: its id); one that it has already is taken once."""
        kept = [self._examined(path) for path in photos]
        with self._changed(identity) as (folder, document):
            return _save(folder, _with_photos(document, [self._write(folder, examined) for examined in kept]))

    def rename(self, identity: str, name: str) -> Identity:
        """Raises ``GalleryError`` for a name that another face has."""
        with self._changed(identity) as (folder, document):
            return _save(folder, document.model_copy(update={"name": self._free_name(name, but=identity)}))

    def set_favourite(self, identity: str, favourite: bool) -> Identity:
        with self._changed(identity) as (folder, document):
            return _save(folder, document.model_copy(update={"favourite": favourite}))

    def arrange(self, identities: Iterable[str]) -> None:
        """Puts those with these ids first, in this order; the others keep theirs. Ids that are gone meanwhile are passed over."""
        with self._changing():
            own = {identity.id: document for document, identity in self._own() if not identity.problem}
            before = sorted(own, key=lambda key: own[key].place)
            wished = [key for key in dict.fromkeys(identities) if key in own]
            for place, key in enumerate([*wished, *(key for key in before if key not in wished)]):
                if own[key].place != place:
                    _save(self.folder / key, own[key].model_copy(update={"place": place}))

    def remove(self, identity: str) -> Removed:
        """Sets it aside: ``restore`` brings it back until ``close``."""
        with self._changing():
            folder = self._folder_of(identity)
            name = self.find(identity).name
            self._set_aside(folder, self.folder / REMOVED / identity)
        return Removed(identity, name)

    def remove_photo(self, identity: str, photo: Path) -> Removed:
        """Sets one photo aside. Raises ``GalleryError`` for the last: a face without a photo is to be removed as a whole."""
        with self._changed(identity) as (folder, document):
            kept = tuple(entry for entry in document.photos if entry.file != photo.name)
            if len(kept) == len(document.photos):
                raise GalleryError(f"{document.name!r} has no photo {photo.name}; it may have been removed already")
            if not kept:
                raise GalleryError(f"this is the only photo of {document.name!r}; remove the face instead, or add another photo first")
            _save(folder, document.model_copy(update={"photos": kept}))
            if (folder / photo.name).exists():
                self._set_aside(folder / photo.name, self.folder / REMOVED / f"{identity}-{photo.name}")
            (folder / f"{Path(photo.name).stem}.thumb.jpg").unlink(missing_ok=True)
        return Removed(identity, document.name, folder / photo.name)

    def restore(self, removed: Removed) -> Identity:
        """Brings back what was removed; numbers the name where another face has it by now."""
        if removed.photo is not None:
            aside = self.folder / REMOVED / f"{removed.identity}-{removed.photo.name}"
            restored = self.add_photos(removed.identity, [aside])
            self._forget(aside)
            return restored
        aside = self.folder / REMOVED / removed.identity
        with self._changing():
            try:
                document = _read_document(aside)
                document = document.model_copy(update={"name": self._numbered(document.name)})
                _write_document(aside, document)
            except StoreError:
                document = None  # damaged, and comes back as it was
            try:
                os.replace(aside, self.folder / removed.identity)
            except OSError:
                raise GalleryError(f"{removed.name!r} can no longer be brought back; add its photos again") from None
            self._removed.discard(aside)
        return self.find(removed.identity) if document is None else document.identity(self.folder / removed.identity)

    def close(self) -> None:
        """Deletes what was removed and not brought back, and what a program that crashed left a day ago. The gallery stays of use."""
        for aside in tuple(self._removed):
            self._forget(aside)
        for left in (*self.folder.glob(f"{REMOVED}/*"), *self.folder.glob(f"{UNFINISHED}*")):
            if _age_s(left) > FORGOTTEN_S:
                self._forget(left)

    # --- inside ---

    def _own(self) -> Iterator[tuple[_Document, Identity]]:
        try:
            folders = sorted(path for path in self.folder.iterdir() if not path.name.startswith(".") and path.is_dir())
        except FileNotFoundError:
            return
        except OSError as error:
            raise GalleryError(f"the gallery {self.folder} cannot be read ({error.strerror or error}); allow it") from error
        for folder in folders:
            try:
                document = _read_document(folder)
                yield document, document.identity(folder)
            except StoreError as error:
                document = _recovered(folder)
                yield document, replace(document.identity(folder), problem=str(error))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with locked(self.folder / "gallery"):
            yield

    @contextmanager
    def _changed(self, identity: str) -> Iterator[tuple[Path, _Document]]:
        with self._changing():
            folder = self._folder_of(identity)
            yield folder, _read_document(folder)

    def _folder_of(self, identity: str) -> Path:
        """Of an id alone, never of a path."""
        if any(known.id == identity for known in built_in()):
            raise GalleryError(f"{identity!r} came with ffrt and cannot be changed; add a photo of your own")
        folder = self.folder / identity
        if not identity or identity.startswith(".") or Path(identity).name != identity or not folder.is_dir():
            raise GalleryError(f"the face {identity!r} is no longer in the gallery; another ffrt may have removed it")
        return folder

    def _last_place(self) -> int:
        return max((document.place for document, _ in self._own()), default=-1)

    def _name_for(self, name: str | None, photo: Path) -> str:
        if name is not None:
            return self._free_name(name)
        spaced = re.sub(r"[\s_]+", " ", photo.stem)  # as people write file names
        given = _printable(spaced).strip()[: NAME_MAX - 4].strip()
        return self._numbered(given or "face")

    def _numbered(self, name: str) -> str:
        taken, number, free = self._taken(), 1, name
        while _folded(free) in taken:
            number += 1
            free = f"{name} {number}"
        return free

    def _free_name(self, name: str, but: str = "") -> str:
        name = checked_name(name)
        if _folded(name) in self._taken(but):
            raise GalleryError(f"there is a face {name!r} already; give another name, or add the photo to that one")
        return name

    def _taken(self, but: str = "") -> set[str]:
        return {_folded(identity.name) for identity in self.identities() if identity.id != but}

    def _examined(self, path: Path) -> _Examined:
        """Looked at before the gallery is locked. Raises ``PhotoError``."""
        try:
            if path.is_file() and path.stat().st_size > BYTES_MAX:
                raise PhotoError(f"{path} has {path.stat().st_size >> 20} MB; give a photo of at most {BYTES_MAX >> 20} MB")
        except OSError as error:
            raise PhotoError(f"the photo {path} cannot be read: {error.strerror}; check its permissions") from error
        report = self._report(path)
        if Hint.NO_FACE in report.hints:
            raise PhotoError(f"no face was found in {path}; give a photo of a face from the front, large and well lit")
        try:
            data = path.read_bytes()
        except OSError as error:
            raise PhotoError(f"the photo {path} cannot be read: {error.strerror}; check its permissions") from error
        return _Examined(_content(data) + _suffix(path), data, report, _printable(path.name))

    def _report(self, path: Path) -> PhotoReport:
        with self._looking:
            if self._look_at is None:
                self._look_at = PhotoCheck().look_at
            return self._look_at(path)

    def _write(self, folder: Path, examined: _Examined) -> _PhotoDocument:
        write_atomically(folder / examined.name, examined.data)
        write_atomically(folder / f"{Path(examined.name).stem}.thumb.jpg", thumbnail_of(examined.report))
        height, width = examined.report.image.shape[:2]
        left, top, across, down = _box(examined.report.faces[0])
        box = (left / width, top / height, across / width, down / height)
        hints = tuple(hint.name for hint in examined.report.hints)
        return _PhotoDocument(file=examined.name, hints=hints, box=box, called=examined.called)

    def _set_aside(self, path: Path, aside: Path) -> None:
        try:
            aside.parent.mkdir(parents=True, exist_ok=True)
            self._forget(aside)
            os.replace(path, aside)
            os.utime(aside)
        except OSError as error:
            raise _unwritable(path, error) from error
        self._removed.add(aside)

    def _forget(self, aside: Path) -> None:
        self._removed.discard(aside)
        if aside.is_dir():
            shutil.rmtree(aside, ignore_errors=True)
        else:
            aside.unlink(missing_ok=True)


def _content(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _content_of(file: Path) -> str:
    """Read only where the name does not tell."""
    return file.stem if CONTENT_NAME.match(file.name) else _content(file.read_bytes())


def built_in() -> tuple[Identity, ...]:
    """The portraits that come with the program: free of rights, see assets/portraits/README.md."""
    folder = Path(str(files("assets") / "portraits"))
    portraits = (folder / name for name in PORTRAITS)
    return tuple(Identity(f"built-in-{file.stem}", file.stem.capitalize(), (Photo(file),), built_in=True) for file in portraits)


def checked_name(name: str) -> str:
    """``name`` in its normal form, blanks around it aside. Raises ``GalleryError`` for what is none."""
    normal = unicodedata.normalize("NFC", name).strip()
    if not normal or not normal.isprintable() or len(normal) > NAME_MAX:
        raise GalleryError(f"{name[:NAME_MAX]!r} was given as a face's name; give up to {NAME_MAX} letters that can be shown")
    return normal


def thumbnail_of(report: PhotoReport) -> bytes:
    """JPEG, ``THUMBNAIL_PX`` square: the largest face in the middle; the middle of the photo where there is none."""
    image = report.image
    height, width = image.shape[:2]
    if report.faces:
        left, top, across, down = _box(report.faces[0])
        side, centre = max(across, down) / FACE_SHARE, (left + across / 2, top + down / 2)
    else:
        side, centre = float(min(width, height)), (width / 2, height / 2)
    scale = THUMBNAIL_PX / max(side, 1.0)
    middle = (THUMBNAIL_PX - 1) / 2
    matrix = np.array([[scale, 0, middle - scale * centre[0]], [0, scale, middle - scale * centre[1]]], np.float64)
    if scale < 0.5:  # halved first: the warp looks at four pixels only
        step = 0.5 ** int(np.log2(0.5 / scale) + 1)
        image = cv2.resize(image, (max(1, round(width * step)), max(1, round(height * step))), interpolation=cv2.INTER_AREA)
        matrix[:, :2] *= width / image.shape[1]
    picture = cv2.warpAffine(image, matrix, (THUMBNAIL_PX, THUMBNAIL_PX), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 88])[1].tobytes()


@dataclass(frozen=True, slots=True)
class _Examined:
    name: str
    data: bytes
    report: PhotoReport
    called: str


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class _PhotoDocument(_Part):
    file: str = Field(pattern=CONTENT_NAME.pattern)
    hints: tuple[str, ...] = ()
    box: tuple[float, float, float, float] | None = None
    called: str = ""

    def photo(self, folder: Path) -> Photo:
        """A hint that a newer ffrt gave is left out."""
        hints = tuple(Hint[name] for name in self.hints if name in Hint.__members__)
        return Photo(folder / self.file, hints, self.box, self.called)


class _Document(_Part):
    """What ``identity.json`` holds."""

    name: str = Field(min_length=1, max_length=NAME_MAX)
    favourite: bool = False
    place: int = 0
    """Where it stands among the others; two may have one place."""
    photos: tuple[_PhotoDocument, ...] = ()

    @field_validator("name")
    @classmethod
    def _can_be_shown(cls, value: str) -> str:
        if not value.isprintable():
            raise ValueError("letters that can be shown are accepted")
        return value

    def identity(self, folder: Path) -> Identity:
        return Identity(folder.name, self.name, tuple(photo.photo(folder) for photo in self.photos), self.favourite)

    @classmethod
    def read(cls, facts: dict[str, Any], place: Path) -> Self:
        check_version(facts, VERSION_KEY, VERSION, place, GalleryError)
        return checked(cls, {name: value for name, value in facts.items() if name != VERSION_KEY}, place, GalleryError)


def _read_document(folder: Path) -> _Document:
    place = folder / DOCUMENT
    text = read_text(place)
    if text is None:
        raise GalleryError(f"{place} is missing; remove the face and add its photos again")
    facts = json_object(text, place, GalleryError, "remove the face and add its photos again")
    return _Document.read(facts, place)


def _write_document(folder: Path, document: _Document) -> None:
    facts = {VERSION_KEY: VERSION, **document.model_dump(mode="json")}
    write_atomically(folder / DOCUMENT, json.dumps(facts, indent=1, ensure_ascii=False).encode())


def _save(folder: Path, document: _Document) -> Identity:
    _write_document(folder, document)
    return document.identity(folder)


def _with_photos(document: _Document, photos: Iterable[_PhotoDocument]) -> _Document:
    kept = {photo.file: photo for photo in (*document.photos, *photos)}
    return document.model_copy(update={"photos": tuple(kept.values())})


def _recovered(folder: Path) -> _Document:
    """Of a face whose document is damaged: its photos, under the folder's name."""
    try:
        names = sorted(path.name for path in folder.iterdir() if CONTENT_NAME.fullmatch(path.name))
    except OSError as error:
        log.warning("%s cannot be read: %s", folder, error)
        names = []
    return _Document(name=folder.name[:NAME_MAX], photos=tuple(_PhotoDocument(file=name) for name in names))


def _printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())


def _suffix(path: Path) -> str:
    """What the file was called, for people who look into the folder; nothing reads it."""
    suffix = path.suffix.lower()
    return suffix if suffix[1:].isalnum() and suffix.isascii() and len(suffix) <= 6 else ""


def _box(points: np.ndarray) -> tuple[float, float, float, float]:
    left, top = points[:, :2].min(0)
    right, bottom = points[:, :2].max(0)
    return float(left), float(top), float(right - left), float(bottom - top)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip().casefold()


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def _unwritable(place: Path, error: OSError) -> GalleryError:
    return GalleryError(f"{place} cannot be changed ({error.strerror or error}); allow it, or free some space")

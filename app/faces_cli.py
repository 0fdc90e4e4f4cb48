"""`ffrt faces`: the gallery from the command line, and its names after `--source`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import cyclopts

from app import console
from app.errors import GalleryError, UsageError
from app.parameters import Switch

if TYPE_CHECKING:
    from app.gallery import Identity

faces = cyclopts.App(name="faces", help="Keeps photos of faces by name, to be worn with `ffrt --source NAME`.")



@faces.command(name="list")
def list_faces(*, json: Annotated[bool, Switch] = False) -> int:
    """Lists the faces of the gallery, and those that come with ffrt.

    Parameters
    ----------
    json
        print JSON instead of a table.
    """
    from app.gallery import Gallery

    console.set_up_logging(False)
    rows = [row(identity) for identity in Gallery().identities()]
    console.print_json(rows) if json else console.print_faces(rows)
    return 0


@faces.command
def add(photos: Path, /, *more: Path, name: str | None = None, into: str | None = None, json: Annotated[bool, Switch] = False) -> int:
    """Copies photos of one person into the gallery, with hints on what would make a poor swap.

    Parameters
    ----------
    photos
        a photo with a face.
    more
        further photos of the same person.
    name
        what to call the face; the first file's name otherwise.
    into
        name of a face of the gallery that gets the photos, instead of a new one.
    json
        print the face as JSON.
    """
    from app.gallery import Gallery
    from app.session import limit_threads

    console.set_up_logging(False)
    if name is not None and into is not None:
        raise UsageError(f"--name {name} and --into {into} were given; give --name for a new face, or --into for one that is there")
    limit_threads()
    gallery, given = Gallery(), (photos, *more)
    identity = gallery.add(given, name) if into is None else gallery.add_photos(gallery.find(into).id, given)
    _print(identity, json, f"added {identity.name}")
    for photo in identity.photos:
        for hint in photo.hints:
            console.note(f"{photo.title}: {hint}")
    return 0


@faces.command
def rename(name: str, to: str, /, *, json: Annotated[bool, Switch] = False) -> int:
    """Gives a face another name.

    Parameters
    ----------
    name
        its name, or its id.
    to
        the new name.
    json
        print the face as JSON.
    """
    from app.gallery import Gallery

    console.set_up_logging(False)
    gallery = Gallery()
    identity = gallery.rename(gallery.find(name).id, to)
    _print(identity, json, f"renamed {name} to {identity.name}")
    return 0


@faces.command
def remove(name: str, /, *, json: Annotated[bool, Switch] = False) -> int:
    """Deletes a face and the gallery's copies of its photos; the files that they were copied from stay.

    Parameters
    ----------
    name
        its name, or its id.
    json
        print what was removed as JSON.
    """
    from app.gallery import Gallery

    console.set_up_logging(False)
    gallery = Gallery()
    identity = gallery.find(name)
    gallery.remove(identity.id)
    gallery.close()
    _print(identity, json, f"removed {identity.name}")
    return 0


def photos_of(words: Sequence[str]) -> tuple[Path, ...]:
    """What was given after `--source`: files, and names of the gallery. A file of that name wins.

    Raises ``GalleryError`` for a face without photos, and for what is neither and looks like a name. A path is left to whoever opens it.
    """
    return tuple(photo for word in words for photo in _photos_of(word))


def _photos_of(word: str) -> tuple[Path, ...]:
    path = Path(word)
    if not word or path.exists():
        return (path,)
    from app.gallery import Gallery

    try:
        identity = Gallery().find(word)
    except GalleryError as error:
        if path.suffix or len(path.parts) > 1:
            return (path,)
        raise GalleryError(f"there is no photo {word}, and {error}") from error
    return identity.source.photos


def row(identity: Identity) -> dict[str, Any]:
    """JSON-ready."""
    photos = [
        {"file": str(photo.file), "called": photo.called, "there": photo.is_there, "hints": [hint.name.lower() for hint in photo.hints]}
        for photo in identity.photos
    ]
    facts = {"id": identity.id, "name": identity.name, "favourite": identity.favourite, "built_in": identity.built_in}
    return {**facts, "photos": photos, "problem": identity.problem}


def _print(identity: Identity, as_json: bool, done: str) -> None:
    console.print_json(row(identity)) if as_json else console.note(done)

"""What is dropped or pasted: photos go to the gallery, a video may become the camera, anything else is answered in words."""

from __future__ import annotations

import mimetypes
import tempfile
from functools import partial
from pathlib import Path

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QImage

from app.gui.cards.camera import CameraCard
from app.gui.cards.face import FaceCard
from app.gui.notice import Notice
from app.gui.words import tr


class Intake:
    """Main thread; whatever is opened is opened by a worker."""

    def __init__(self, face: FaceCard, camera: CameraCard, notice: Notice) -> None:
        self._face = face
        self._camera = camera
        self._notice = notice

    @staticmethod
    def wants(data: QMimeData) -> bool:
        """Nearly everything: what cannot be used is answered."""
        return bool(data.hasUrls() or data.hasImage() or data.hasText())

    def take(self, data: QMimeData) -> None:
        """Files before pictures before text: programs give several forms of one thing."""
        files = [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile() and url.toLocalFile()]
        if files:
            self._take_files(files)
        elif data.hasImage():
            self._take_image(QImage(data.imageData()))
        elif data.hasUrls() or data.hasText():
            text = data.urls()[0].toString() if data.hasUrls() else data.text().strip()
            self._take_text(text)

    def _take_files(self, files: list[Path]) -> None:
        folder = next((path for path in files if path.is_dir()), None)
        videos = [path for path in files if _kind(path) in ("video", "audio")]
        if folder is not None:
            self._notice.say(tr("{name} is a folder. Open it, and drop the photos of one person.").format(name=folder.name))
        elif videos:
            film = videos[0]
            text = tr("{name} is a video, not a photo. It can stand in for the camera.").format(name=film.name)
            self._notice.say(text, tr("Use it as the camera"), partial(self._camera.take, str(film)))
        else:
            self._face.add_photos(files)

    def _take_image(self, image: QImage) -> None:
        if image.isNull():
            self._notice.say(tr("The picture that was pasted is empty. Copy it again, or save it and drop the file."))
        else:
            self._face.add_made(partial(_saved, image, tr("Pasted")))

    def _take_text(self, text: str) -> None:
        if "://" in text and not any(letter.isspace() for letter in text):
            words = tr("That is an address. It can stand in for the camera; a photo has to be saved and dropped as a file.")
            self._notice.say(words, tr("Use it as the camera"), partial(self._camera.take, text))
        else:
            self._notice.say(tr("That is text, not a photo. Drop or paste a photo of a face."))


def _kind(path: Path) -> str:
    return (mimetypes.guess_type(path.name)[0] or "").partition("/")[0]


def _saved(image: QImage, name: str) -> Path:
    """A file of its own in a folder of its own. On the worker's thread: writing a large one takes a second."""
    path = Path(tempfile.mkdtemp(prefix="ffrt-")) / f"{name}.png"
    image.save(str(path))
    return path

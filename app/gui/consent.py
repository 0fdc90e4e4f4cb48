"""The first page: what the program does with faces, asked once and remembered."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPushButton, QVBoxLayout

from app.folders import config_folder
from app.gui.words import tr
from app.report import write_json


def consent_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Beside the settings. Raises ``FolderError``."""
    return config_folder(environment) / "consent.json"


WIDTH_PX, MARGIN_PX = 560, 36


class Consent(QDialog):
    """Accepted once the person agreed."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("page")
        self.setWindowTitle("ffrt")
        self.setFixedWidth(WIDTH_PX)
        title = QLabel(tr("Wear only faces you may wear"))
        title.setObjectName("title")
        text = QLabel(
            tr(
                "ffrt puts the face of a photo on the person before the camera. Use your own face, faces of people who agreed, "
                "or pictures in the public domain, and tell your audience.\n\n"
                "Photos and pictures stay on this computer. They leave it only by the outputs that you switch on."
            )
        )
        for label in (title, text):  # as high as their words are in this language
            label.setWordWrap(True)
            label.setFixedWidth(WIDTH_PX - 2 * MARGIN_PX)
            label.ensurePolished()
            label.setMinimumHeight(label.heightForWidth(label.width()))
        self.agree = QPushButton(tr("I agree"))
        self.agree.setObjectName("primary")
        self.agree.setDefault(True)
        self.agree.clicked.connect(self.accept)
        leave = QPushButton(tr("Quit"))
        leave.clicked.connect(self.reject)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(leave)
        row.addWidget(self.agree)
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN_PX, 32, MARGIN_PX, 28)
        column.setSpacing(20)
        column.addWidget(title)
        column.addWidget(text)
        column.addLayout(row)


def ask_once(file: Path) -> bool:
    """True where the person agreed, now or before. Main thread; raises ``AppError`` where that cannot be kept."""
    if file.exists():
        return True
    if Consent().exec() != QDialog.DialogCode.Accepted:
        return False
    write_json(file, {"agreed": True})
    return True

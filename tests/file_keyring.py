"""A backend of the real keyring library that keeps everything in a JSON file: for tests that start other processes.

PYTHON_KEYRING_BACKEND=file_keyring.FileKeyring FILE_KEYRING=keys.json
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend


class FileKeyring(KeyringBackend):
    priority = 5  # type: ignore[assignment]

    def get_password(self, service: str, username: str) -> str | None:
        return self._kept().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._keep({**self._kept(), f"{service}/{username}": password})

    def delete_password(self, service: str, username: str) -> None:
        kept = self._kept()
        del kept[f"{service}/{username}"]
        self._keep(kept)

    def _kept(self) -> dict[str, str]:
        file = Path(os.environ["FILE_KEYRING"])
        return json.loads(file.read_text()) if file.exists() else {}

    def _keep(self, kept: dict[str, str]) -> None:
        Path(os.environ["FILE_KEYRING"]).write_text(json.dumps(kept))

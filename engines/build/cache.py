"""Built engines on disk, by key: ``<key>.engine`` beside ``<key>.json``, which is written last and holds its SHA-256.

What is half written, damaged or unreadable does not count as there. Processes agree by a lock file for each key.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from engines.build.key import SCHEMA, EngineKey
from engines.errors import BuildCancelled, CacheError
from engines.folders import cache_folder

LOCK_POLL_S = 0.1
"""How often a process that waits for another one's build looks whether it was called off."""

COMPILED = ".compiled"
"""What TensorRT for RTX compiled of an engine on this GPU."""

DAY_S = 86400.0

ENDINGS = (".json", ".engine", ".part", ".json.part", COMPILED, COMPILED + ".part")
"""All that may lie beside each other under one key."""

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Entry:
    """One engine on disk."""

    key: EngineKey
    path: Path
    nbytes: int
    sha256: str
    """Of the engine, not of the model."""
    created_s: float
    """Seconds since 1970, by the clock of the machine that built it."""
    facts: Mapping[str, Any]
    """What the builder had to tell: the model's name, seconds, and ``parity`` once it was compared."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "key": self.key.hex,
            "file": str(self.path),
            "bytes": self.nbytes,
            "sha256": self.sha256,
            "created_s": self.created_s,
            "facts": dict(self.facts),
            **self.key.to_dict(),
        }


class EngineCache:
    """Safe to use from several threads and processes at once: nothing is kept in memory."""

    def __init__(self, folder: Path | None = None) -> None:
        """``folder``: for engines alone; ``engines`` in the program's cache folder otherwise. Made when the first engine is kept."""
        self.folder = folder or cache_folder() / "engines"

    def find(self, key: EngineKey) -> Entry | None:
        """The entry of ``key``, its file proven whole; None where there is none or it is damaged (it is then built again)."""
        entry = self._entry(key.hex)
        return entry if entry is not None and entry.key == key and _whole(entry) else None

    def entries(self) -> list[Entry]:
        """All that look whole by their size, newest first; the engines themselves are not read."""
        found = [self._entry(path.stem) for path in self._files("*.json")]
        return sorted((entry for entry in found if entry is not None), key=lambda entry: (-entry.created_s, entry.path.name))

    def get_or_build(
        self,
        key: EngineKey,
        build: Callable[[Path], Mapping[str, Any]],
        *,
        now_s: Callable[[], float],
        waiting: Callable[[], None] = lambda: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> tuple[Entry, bool]:
        """The entry of ``key``, and whether it was built now.

        ``build`` writes the engine to the path it is given and returns facts (JSON-ready). ``waiting`` is called once while another
        process builds the same key, whose result is then taken. Raises ``CacheError``, ``BuildCancelled``, and what ``build`` raises.
        """
        found = self.find(key)
        if found is not None:
            return found, False
        with self._locked(key.hex, waiting, cancelled):
            found = self.find(key)  # another process may have built it meanwhile
            if found is not None:
                return found, False
            return self._build(key, build, now_s()), True

    def add_facts(self, key: EngineKey, facts: Mapping[str, Any]) -> Entry:
        """Writes ``facts`` beside those there are (a parity verdict, when a GPU was at hand). Raises ``CacheError``."""
        with self._locked(key.hex, lambda: None, lambda: False):
            entry = self.find(key)
            if entry is None:
                raise CacheError(f"the engine {key.hex[:12]} is no longer in {self.folder}; build it again")
            return self._commit(key, entry.nbytes, entry.sha256, entry.created_s, {**entry.facts, **facts})

    def remove(self, key_hex: str) -> int:
        """Bytes freed; 0 where there was nothing, or it is being built at this moment.

        Whoever runs the engine goes on: it was read as a whole. The empty lock file stays: another process may be about to take it.
        """
        try:
            with FileLock(str(self._path(key_hex, ".lock")), timeout=0):
                paths = [self._path(key_hex, ending) for ending in ENDINGS]
                freed = sum(path.stat().st_size for path in paths if path.exists())
                for path in paths:  # the table first: without it the engine does not count
                    path.unlink(missing_ok=True)
        except Timeout:
            return 0
        except OSError as error:
            raise unusable(self.folder, error) from error
        return freed

    def prune(
        self,
        *,
        now_s: float,
        max_age_days: float | None = None,
        max_bytes: int | None = None,
        versions: Mapping[str, str] | None = None,
    ) -> list[tuple[str, str, int]]:
        """Removes leftovers, damaged and stale engines, those that are too old, then the oldest until the rest fits ``max_bytes``.

        ``versions``: runtime → version installed; an engine of another version of it is stale. Returns (key, why, bytes freed).
        """
        entries = self.entries()
        doomed = dict.fromkeys(self._keys() - {entry.key.hex for entry in entries}, "half written or damaged")
        for entry in entries:
            why = _outdated(entry, now_s, max_age_days, versions or {})
            if why:
                doomed[entry.key.hex] = why
        doomed.update(_too_many([entry for entry in entries if entry.key.hex not in doomed], max_bytes))
        removed = [(key, why, self.remove(key)) for key, why in sorted(doomed.items())]
        return [(key, why, freed) for key, why, freed in removed if freed]

    def _build(self, key: EngineKey, build: Callable[[Path], Mapping[str, Any]], now_s: float) -> Entry:
        """The lock's holder."""
        part = self._path(key.hex, ".part")
        try:
            part.unlink(missing_ok=True)  # of a process that was killed
            facts = build(part)
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            nbytes, digest = part.stat().st_size, _digest(part)
            part.replace(self._path(key.hex, ".engine"))
            return self._commit(key, nbytes, digest, now_s, facts)
        except OSError as error:
            raise unusable(self.folder, error) from error
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)

    def _commit(self, key: EngineKey, nbytes: int, digest: str, created_s: float, facts: Mapping[str, Any]) -> Entry:
        facts = json.loads(json.dumps(dict(facts)))  # as they will be read again
        table = {"key": key.to_dict(), "bytes": nbytes, "sha256": digest, "created_s": created_s, "facts": facts}
        part = self._path(key.hex, ".json.part")
        try:
            with part.open("w", encoding="utf-8") as file:
                json.dump(table, file, indent=2)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._path(key.hex, ".json"))
        except OSError as error:
            part.unlink(missing_ok=True)
            raise unusable(self.folder, error) from error
        return Entry(key, self._path(key.hex, ".engine"), nbytes, digest, created_s, facts)

    def _entry(self, key_hex: str) -> Entry | None:
        """From the table beside the engine; None for one that is missing, not ours, or of another size than the engine."""
        path = self._path(key_hex, ".engine")
        try:
            table = json.loads(self._path(key_hex, ".json").read_text(encoding="utf-8"))
            key = EngineKey.from_dict(table["key"])
            entry = Entry(key, path, int(table["bytes"]), str(table["sha256"]), float(table["created_s"]), dict(table["facts"]))
            whole = path.stat().st_size == entry.nbytes and key.hex == key_hex
        except Exception:  # a file that anything may have written: whatever is wrong with it, it is no entry
            return None
        return entry if whole else None

    @contextmanager
    def _locked(self, key_hex: str, waiting: Callable[[], None], cancelled: Callable[[], bool]) -> Iterator[None]:
        """Between processes and threads."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(str(self._path(key_hex, ".lock")))
            _acquire(lock, waiting, cancelled)
        except OSError as error:
            raise unusable(self.folder, error) from error
        try:
            yield
        finally:
            lock.release()

    def _path(self, key_hex: str, ending: str) -> Path:
        return self.folder / f"{key_hex}{ending}"

    def _files(self, pattern: str) -> list[Path]:
        return sorted(self.folder.glob(pattern)) if self.folder.is_dir() else []

    def _keys(self) -> set[str]:
        """Of every file but lock files."""
        return {path.name.partition(".")[0] for path in self._files("*.*") if path.suffix != ".lock"}


def unusable(folder: Path, error: OSError) -> CacheError:
    """What to say where ``folder``, the cache's, could not be read or written."""
    where = f"the folder of engines, {folder},"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return CacheError(f"{where} has no space left; run `ffrt engines prune`, or set FFRT_CACHE to a folder on another disk")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return CacheError(f"{where} may not be written; make it writable, or set FFRT_CACHE to a folder that is")
    return CacheError(f"{where} cannot be used ({error.strerror or error}); set FFRT_CACHE to a folder that can be written")


def _acquire(lock: FileLock, waiting: Callable[[], None], cancelled: Callable[[], bool]) -> None:
    told = False
    while True:
        try:
            lock.acquire(timeout=LOCK_POLL_S if told else 0)
            return
        except Timeout:
            if not told:
                waiting()
                told = True
            if cancelled():
                raise BuildCancelled("the wait for another process's build of the same engine was called off") from None


def _digest(path: Path) -> str:
    state = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            state.update(chunk)
    return state.hexdigest()


def _whole(entry: Entry) -> bool:
    try:
        return _digest(entry.path) == entry.sha256
    except OSError:
        return False


def _outdated(entry: Entry, now_s: float, max_age_days: float | None, versions: Mapping[str, str]) -> str:
    """Why an engine is to go; empty where it may stay."""
    key = entry.key
    if key.schema != SCHEMA:
        return "made by another version of ffrt"
    installed = versions.get(key.runtime, key.runtime_version)
    if installed != key.runtime_version:
        return f"built by {key.runtime} {key.runtime_version}, and {installed} is installed"
    if max_age_days is not None and now_s - entry.created_s > max_age_days * DAY_S:
        return f"older than {max_age_days:g} days"
    return ""


def _too_many(entries: list[Entry], max_bytes: int | None) -> dict[str, str]:
    """``entries``: newest first."""
    doomed: dict[str, str] = {}
    total = 0
    for entry in entries:
        total += entry.nbytes
        if max_bytes is not None and total > max_bytes:
            doomed[entry.key.hex] = f"the newer ones fill {max_bytes / 1e6:g} MB"
    return doomed

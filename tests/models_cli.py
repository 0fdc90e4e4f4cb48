"""`ffrt` with a catalogue and families of a test: python models_cli.py CATALOG ARGUMENTS…"""

from __future__ import annotations

import sys
from pathlib import Path

from store_files import EIGHT, families

import app.models
from app.main import main
from engines.store.catalog import load_catalog

if __name__ == "__main__":
    catalog = Path(sys.argv.pop(1))
    app.models.load_catalog = lambda: load_catalog(catalog)  # type: ignore[assignment]
    app.models.families = families(**EIGHT)
    main()

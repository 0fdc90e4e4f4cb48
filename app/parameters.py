"""Kinds of parameters that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

Switch = Parameter(negative="")
"""There or not: no ``--no-…``."""


def _check_report(_type: object, path: Path | None) -> None:
    """Before the work that is to be reported, not after it. Raises ``UsageError``."""
    if path is not None:
        from app.places import check_report

        check_report(path)


ReportFile = Annotated[Path | None, Parameter(validator=_check_report)]

"""Every module of the engines can be the first to be imported: no two of them wait for each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

EACH_FIRST = """
import importlib, pkgutil, sys
import engines
names = [module.name for module in pkgutil.walk_packages(engines.__path__, "engines.")]
for name in names:
    for known in [known for known in sys.modules if known.partition(".")[0] == "engines"]:
        del sys.modules[known]
    try:
        importlib.import_module(name)
    except ImportError as error:
        if (error.name or "engines").partition(".")[0] == "engines":  # not a package of somebody else's that is not installed
            print(name, error)
print(len(names))
"""


def test_any_module_may_be_imported_first() -> None:
    done = subprocess.run([sys.executable, "-c", EACH_FIRST], capture_output=True, text=True, timeout=110, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    *problems, count = done.stdout.splitlines()
    assert not problems
    assert int(count) > 60

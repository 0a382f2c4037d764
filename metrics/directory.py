"""The directory where the processes of one host keep what they have counted, one file per process and kind.

``PROMETHEUS_MULTIPROC_DIR`` names it. Without it, it is one below the system's temporary directory that belongs to this
user and this copy of the shop. Never share it between hosts or containers: process ids would collide.
"""

import os
import tempfile
import zlib
from pathlib import Path

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
OURS_ALONE = 0o700


def choose_directory() -> None:
    """Make the directory and name it to the client library; where none can be had, every process counts for itself."""
    if named := os.environ.get(VARIABLE):
        Path(named).mkdir(parents=True, exist_ok=True)
        return
    home = Path(__file__).resolve().parent.parent
    path = Path(tempfile.gettempdir()) / f"seckill-metrics-{os.getuid()}-{zlib.crc32(str(home).encode()):08x}"
    if _is_ours(path):
        os.environ[VARIABLE] = str(path)


def directory() -> Path | None:
    """Return the directory, or None where there is none."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def _is_ours(path: Path) -> bool:
    """Make the directory if need be; tell whether it belongs to us alone, as anybody may make names in there."""
    try:
        path.mkdir(mode=OURS_ALONE, exist_ok=True)
        state = path.stat(follow_symlinks=False)
    except OSError:
        return False
    return path.is_dir() and not path.is_symlink() and state.st_uid == os.getuid() and state.st_mode & 0o077 == 0

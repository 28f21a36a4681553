"""Check which paths a model may name: those below the run's roots that are not private. Pure.

Rules of this file
- A path is only text here: no file system is asked, and nothing is resolved. ``..`` is refused
  anywhere, so a path leads where it says; ``files/confined.py`` refuses links when it opens one.
- A relative path starts in the memory directory.
- The longest root wins: a memory directory inside a project is the memory directory.
- Hidden files are refused below every root. In a project, files whose names are known for
  credentials are refused, whether they exist or not.
"""

import fnmatch
import re

from msgspec import Struct

from memd.agent.refusals import NotReachableError
from memd.base import names

MEMORY, PROJECT, TRANSCRIPTS = "memory", "project", "transcripts"
_PATH_CHARACTERS = 4_096  # a longer path is refused
_SYSTEM_FOLDERS = ("/proc", "/sys", "/dev")

# Why a path is refused, in words for the sentence of its error.
_OUTSIDE = "it lies outside the memory directory, the project and its transcripts"
_PARENT_FOLDER = "a part of it is '..'"
_TILDE = "'~' is not understood; paths are absolute or relative to the memory directory"
_STRANGE_CHARACTER = "it has a character that no path here has"
_TOO_LONG = "it is too long"
_EMPTY = "it is empty"
_HIDDEN = "hidden files and folders are not read"
_CREDENTIALS = "files of this name usually hold credentials"

# Names, in small letters, of files and folders in which people and programs keep credentials.
_CREDENTIAL_NAMES = """
    *.asc *.gpg *.jks *.kdb *.kdbx *.key *.keychain* *.keystore *.ovpn *.p12 *.p8 *.pem *.pfx
    *.pkcs12 *.ppk *.tfstate* *.tfvars *_rsa *.env env.local *.env.* _netrc
    application_default_credentials.json authorized_keys client_secret* cookies.sqlite*
    credential credentials credentials.* htpasswd* id_dsa* id_ecdsa* id_ed25519* id_rsa*
    known_hosts kubeconfig* login.keychain* netrc passwd password passwords passwords.*
    pgpass* secret secret.* secrets secrets.* service-account*.json service_account*.json
    shadow token tokens token.* tokens.* vault-password* vault_pass* wallet.dat
"""
# Compiled by ``re`` at the first use, which is an agent's.
_CREDENTIAL_NAME = "|".join(fnmatch.translate(name) for name in _CREDENTIAL_NAMES.split())


class Root(Struct, frozen=True):
    """A folder that may be read: its kind, its path as callers spell it, and its real path."""

    kind: str
    path: str
    real: str


class Place(Struct, frozen=True):
    """A path below a root; ``name`` is relative, "" for the root itself."""

    root: Root
    name: str

    @property
    def path(self) -> str:
        """The absolute path, below the root's real path."""
        return f"{self.root.real}/{self.name}" if self.name else self.root.real


def may_be_root(path: str) -> bool:
    """Return whether a folder may be a root: not ``/``, and not below /proc, /sys or /dev."""
    if not path.startswith("/") or path.strip("/") == "":
        return False
    return not any(path == folder or path.startswith(f"{folder}/") for folder in _SYSTEM_FOLDERS)


def locate(path: str, roots: tuple[Root, ...]) -> Place:
    """Return the root and the relative name of a path; the first root is the memory directory.

    Raises NotReachableError.
    """
    reason = _reason_against_text(path)
    if reason:
        raise NotReachableError(path, reason)
    absolute = path if path.startswith("/") else f"{roots[0].real}/{path}"
    parts = [part for part in absolute.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise NotReachableError(path, _PARENT_FOLDER)
    place = _place_below_roots("/" + "/".join(parts), roots)
    if place is None:
        raise NotReachableError(path, _OUTSIDE)
    reason = _reason_private(place)
    if reason:
        raise NotReachableError(path, reason)
    return place


def _place_below_roots(path: str, roots: tuple[Root, ...]) -> Place | None:
    """Return the place of an absolute path below the longest root, ``None`` if it is below none."""
    place: Place | None = None
    longest = -1  # characters of the longest root so far
    for root in roots:
        for root_path in (root.path, root.real):
            is_below = path == root_path or path.startswith(f"{root_path}/")
            if is_below and len(root_path) > longest:
                longest = len(root_path)
                place = Place(root, path[longest + 1 :])
    return place


def _reason_private(place: Place) -> str:
    """Return why a place is private, or "" if a model may read it."""
    parts = place.name.split("/") if place.name else []
    if any(part.startswith(".") for part in parts):
        return _HIDDEN
    if place.root.kind == PROJECT and any(
        re.match(_CREDENTIAL_NAME, part.lower()) for part in parts
    ):
        return _CREDENTIALS
    return ""


def _reason_against_text(path: str) -> str:
    """Return why a path's text is refused, or "" if it is not."""
    if not path:
        return _EMPTY
    if len(path) > _PATH_CHARACTERS:
        return _TOO_LONG
    if path.startswith("~"):
        return _TILDE
    if "\\" in path or not names.is_text(path) or not path.isprintable():
        return _STRANGE_CHARACTER
    return ""

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
from memd.core import names

MEMORY, PROJECT, TRANSCRIPTS = "memory", "project", "transcripts"
_PATH_CHARACTERS = 4_096
_SYSTEM = ("/proc", "/sys", "/dev")

_OUTSIDE = "it lies outside the memory directory, the project and its transcripts"
_UP = "a part of it is '..'"
_HOME = "'~' is not understood; paths are absolute or relative to the memory directory"
_STRANGE = "it has a character that no path here has"
_LONG = "it is too long"
_EMPTY = "it is empty"
_HIDDEN = "hidden files and folders are not read"
_CREDENTIALS = "files of this name usually hold credentials"

# Names, in small letters, of files and folders in which people and programs keep credentials.
_NAMES = """
    *.asc *.gpg *.jks *.kdb *.kdbx *.key *.keychain* *.keystore *.ovpn *.p12 *.p8 *.pem *.pfx
    *.pkcs12 *.ppk *.tfstate* *.tfvars *_rsa *.env env.local *.env.* _netrc
    application_default_credentials.json authorized_keys client_secret* cookies.sqlite*
    credential credentials credentials.* htpasswd* id_dsa* id_ecdsa* id_ed25519* id_rsa*
    known_hosts kubeconfig* login.keychain* netrc passwd password passwords passwords.*
    pgpass* secret secret.* secrets secrets.* service-account*.json service_account*.json
    shadow token tokens token.* tokens.* vault-password* vault_pass* wallet.dat
"""
_PRIVATE = re.compile("|".join(map(fnmatch.translate, _NAMES.split())))


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


def usable(path: str) -> bool:
    """Return whether a folder may be a root: not ``/``, and not below /proc, /sys or /dev."""
    if not path.startswith("/") or path.strip("/") == "":
        return False
    return not any(path == place or path.startswith(f"{place}/") for place in _SYSTEM)


def locate(path: str, roots: tuple[Root, ...]) -> Place:
    """Return the root and the relative name of a path; the first root is the memory directory.

    Raises NotReachableError.
    """
    why = _problem(path)
    if why:
        raise NotReachableError(path, why)
    whole = path if path.startswith("/") else f"{roots[0].real}/{path}"
    parts = [part for part in whole.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise NotReachableError(path, _UP)
    clean = "/" + "/".join(parts)
    result: Place | None = None
    longest = -1
    for root in roots:
        for spelled in (root.path, root.real):
            below = clean == spelled or clean.startswith(f"{spelled}/")
            if below and len(spelled) > longest:
                result, longest = Place(root, clean[len(spelled) + 1 :]), len(spelled)
    if result is None:
        raise NotReachableError(path, _OUTSIDE)
    why = why_private(result)
    if why:
        raise NotReachableError(path, why)
    return result


def why_private(place: Place) -> str:
    """Return why a place is private, or "" if a model may read it."""
    parts = place.name.split("/") if place.name else []
    if any(part.startswith(".") for part in parts):
        return _HIDDEN
    if place.root.kind == PROJECT and any(_PRIVATE.match(part.lower()) for part in parts):
        return _CREDENTIALS
    return ""


def _problem(path: str) -> str:
    """Return why a path's text is refused, or "" if it is not."""
    if not path:
        return _EMPTY
    if len(path) > _PATH_CHARACTERS:
        return _LONG
    if path.startswith("~"):
        return _HOME
    if "\\" in path or not names.is_text(path) or not path.isprintable():
        return _STRANGE
    return ""

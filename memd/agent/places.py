"""Which paths a model may name: below the roots of its run, and nothing private. Pure.

Rules of this file
- A path is taken as text: nothing here asks a file system, and nothing is resolved. ``..`` is
  refused wherever it stands, so what a path says is where it leads; links are the business of
  whoever opens it (``files/confined.py``).
- A relative path starts in the memory directory.
- The longest root wins: a memory directory inside a project is the memory directory.
- What is hidden is refused below every root. In a project, files that are known to hold
  credentials are refused by their names, whether they exist or not.
"""

import fnmatch
import re
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Root:
    """A folder that may be read: what it is, how callers spell it, and its real path."""

    kind: str
    path: str
    real: str


@dataclass(frozen=True, slots=True)
class Place:
    """A path below a root; ``name`` is relative, "" for the root itself."""

    root: Root
    name: str

    @property
    def path(self) -> str:
        """The whole path."""
        return f"{self.root.real}/{self.name}" if self.name else self.root.real


def usable(path: str) -> bool:
    """Say whether a folder may be a root: not the whole system, and nothing that is no disk."""
    if not path.startswith("/") or path.strip("/") == "":
        return False
    return not any(path == place or path.startswith(f"{place}/") for place in _SYSTEM)


def locate(path: str, roots: tuple[Root, ...]) -> Place:
    """Return where a path leads; the first root is the memory directory.

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
    """Return why a place is kept from the model, "" when it is not."""
    parts = place.name.split("/") if place.name else []
    if any(part.startswith(".") for part in parts):
        return _HIDDEN
    if place.root.kind == PROJECT and any(_PRIVATE.match(part.lower()) for part in parts):
        return _CREDENTIALS
    return ""


def _problem(path: str) -> str:
    if not path:
        return _EMPTY
    if len(path) > _PATH_CHARACTERS:
        return _LONG
    if path.startswith("~"):
        return _HOME
    if "\\" in path or not names.is_text(path) or not path.isprintable():
        return _STRANGE
    return ""

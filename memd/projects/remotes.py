"""Find the repository that a checkout belongs to, from its remote's address.

The result names a repository on a server and proves nothing: the server decides who may see it.
"""

import os
import re
from ipaddress import AddressValueError, IPv6Address
from urllib.parse import unquote

from memd.projects.git import read_beginning

_SCHEMES = {"http", "https", "ssh", "git", "git+http", "git+https", "git+ssh", "ssh+git"}
_DEFAULT_PORTS = {"", "22", "80", "443", "9418"}
_URL_CHARACTERS = 2_000
_HOST_CHARACTERS = 253
_CONFIG_BYTES = 1024 * 1024
# The rest of a line that holds a query or a fragment is cut.
_URL = r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)/([^?#]*)(?:[?#].*)?"
# git's short form user@host:path; a name of one letter is a drive, "::" a helper's address.
_SCP = r"((?:[^/:\[\]]*@)?(?:\[[^/\[\]]*\]|[^/:\[\]@]{2,})):(?!:)([^?#]+)(?:[?#].*)?"
_AUTHORITY = r"(?:.*@)?(\[[^\[\]]*\]|[^:\[\]@]*)(?::([0-9]{0,5}))?"
_HOST = r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*"
# Lines of a configuration as git writes them, without their blanks at both ends.
_SECTION = r'\[(?:remote "([^"]+)")?[^\]]*\]'
_ADDRESS = r'(?i)url\s*=\s*"?([^"]*)"?'


def repository_of(root: str) -> str:
    """Return the repository in a root's ``.git/config`` as ``host/path``, "" if none. Blocks.

    The file is read and nothing is run; a link in its place is not followed.
    """
    if os.path.islink(f"{root}/.git"):
        return ""
    text = read_beginning(f"{root}/.git/config", _CONFIG_BYTES)
    return normalised(origin(text.decode("utf-8", "replace")))


def normalised(url: str) -> str:
    """Return a remote's address as ``host/path``, the same for each way to reach it.

    It is "" for a local path or an invalid address.
    """
    url = url.strip()
    if len(url) > _URL_CHARACTERS or not url.isprintable():
        return ""
    address = re.fullmatch(_URL, url)
    if address is not None:
        scheme, authority, path = address.groups()
        return _host_and_path(authority, path) if scheme.lower() in _SCHEMES else ""
    short_form = re.fullmatch(_SCP, url)
    if short_form is None or "://" in url:
        return ""
    return _host_and_path(short_form[1], short_form[2])


def origin(config: str) -> str:
    """Return the address of ``origin`` in the text of a ``.git/config``, or of its only remote.

    It is "" if there is neither. Lines are read as git writes them; included files are not read and
    addresses not rewritten.
    """
    remotes: dict[str, list[str]] = {}  # the addresses of each remote by its name
    urls: list[str] = []  # of the section being read; not stored if it is no remote
    for line in map(str.strip, config.splitlines()):
        if section := re.match(_SECTION, line):
            urls = remotes.setdefault(section[1], []) if section[1] else []
        elif address := re.fullmatch(_ADDRESS, line):
            urls.append(address[1])
    only_remote = next(iter(remotes.values())) if len(remotes) == 1 else []
    addresses = remotes.get("origin", only_remote)
    return addresses[0] if addresses else ""


def _host_and_path(authority: str, path: str) -> str:
    """Return host, port and path in a uniform spelling, or "" if one of them is invalid.

    ``authority`` is the part of an address with the user, the host and the port.
    """
    parts = re.fullmatch(_AUTHORITY, authority)
    if parts is None:
        return ""
    host, port = _host(parts[1]), parts[2] or ""
    try:
        names = [name for name in unquote(path, errors="strict").lower().split("/") if name]
    except UnicodeDecodeError:
        return ""
    path = "/".join(names).removesuffix(".git").rstrip("/")
    if not host or not path or not path.isprintable() or {".", ".."} & set(names):
        return ""
    return f"{host}:{int(port)}/{path}" if port not in _DEFAULT_PORTS else f"{host}/{path}"


def _host(name: str) -> str:
    """Return a host's name or address in lower case and ASCII, "" if invalid."""
    if name.startswith("["):
        try:
            return f"[{IPv6Address(name[1:-1])}]"
        except AddressValueError:
            return ""
    try:
        # Cut first: the codec's work grows with the square of the length.
        ascii_name = name[: _HOST_CHARACTERS + 1].encode("idna").decode("ascii").lower()
    except UnicodeError:
        return ""
    ascii_name = ascii_name.removesuffix(".")
    fits = len(ascii_name) <= _HOST_CHARACTERS and re.fullmatch(_HOST, ascii_name)
    return ascii_name if fits else ""

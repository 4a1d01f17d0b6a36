"""The settings in the environment: archive, user, token, spool.

Variables are read when they are needed, so a notebook may set them in any cell
before the first recorded call. Reading one never raises: a value that cannot be used
counts as missing, and the caller reports it.
"""

import ipaddress
import os
import pwd
import re
import stat
import tempfile
from typing import Callable, Dict, List, Optional
from urllib.parse import SplitResult, urlsplit

from ._folder import Folder, own

DEFAULT_URL = "http://127.0.0.1:8080"  # where "oda serve" listens
DEFAULT_SPOOL = "~/.local/state/oda/spool"
DEFAULT_LIMIT = 1 << 30
DEFAULT_EXIT_TIMEOUT = 10.0

# What to do about a variable that cannot be used.
URL_ADVICE = "Set ODA_URL to the address of the archive, such as http://archive.example:8080."
BLOCK_ADVICE = "Create a block with oda_helper.create_eb(), or set EB_ID to the identifier of one."

_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")
# Compiled here, since compiling takes longer than a recorded call.
_STRANGE = re.compile(r"[^!-~]|[?#]")
_TOKEN = re.compile(r"[!-~]*\Z")
_MOST_TOKEN = 64 << 10  # a signed token may be long
_SIZE = re.compile(r"(\d{1,15})\s*(KiB|MiB|GiB|)\Z")
_UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

# What people copy from a browser or from older settings, after the address itself.
_REST = re.compile(
    r"(?:/api/v1(?:/.*)?"
    r"|/api/v[0-9]+(?:/(?:ui|sbds|sbis|ebs|prjs)(?:/.*)?)?"
    r"|/(?:sbds|sbis|ebs|prjs)(?:/[^/]+(?:/timeline(?:/[^/]+)?)?)?"
    r"|/(?:night|changes|compare|search|sign-in|sign-out|signed-in|livez|readyz|metrics)"
    r")\Z"
)

# The raw text of the variable, and its URL or None, for the one or two in use.
_normalised: Dict[str, Optional[str]] = {}


def archive_url() -> Optional[str]:
    """The URL of the archive's API, or None if the one in the environment is not usable."""
    raw = os.environ.get("ODA_URL") or os.environ.get("ODA_URI") or DEFAULT_URL
    if raw not in _normalised:
        if len(_normalised) > 16:
            _normalised.clear()
        try:
            _normalised[raw] = normalise(raw)
        except ValueError:
            _normalised[raw] = None
    return _normalised[raw]


def url_fault() -> str:
    """Why archive_url returns None, without a full stop.

    The URL may contain a password, so it is not repeated.
    """
    name = "ODA_URL" if os.environ.get("ODA_URL") else "ODA_URI"
    try:
        normalise(os.environ.get(name) or DEFAULT_URL)
    except ValueError as problem:
        return "%s %s" % (name, problem)
    return "%s has changed meanwhile" % name


def default_hint(url: str) -> str:
    """What to add to an error about the address if nobody chose it."""
    chosen = os.environ.get("ODA_URL") or os.environ.get("ODA_URI")
    return "" if chosen or url != normalise(DEFAULT_URL) else "; ODA_URL is not set"


def normalise(raw: str) -> str:
    """The URL with /api/v1, however it was written; raises ValueError with the reason.

    It may be the address of the interface, also of another version of it as older
    settings have it, or of any page of the archive.

    >>> normalise("archive:8080/")
    'http://archive:8080/api/v1'
    >>> normalise("https://host/namespace/oda/api/v5")
    'https://host/namespace/oda/api/v1'
    >>> normalise("https://host/namespace/oda/ebs/eb-1?page=2")
    'https://host/namespace/oda/api/v1'
    """
    text = raw.strip()
    if "://" not in text:
        text = "http://" + text
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError:
        raise ValueError("is not well-formed") from None
    try:
        port = parts.port
    except ValueError:
        port = 0
    path = parts.path.rstrip("/")
    if parts.scheme not in ("http", "https"):
        raise ValueError("must begin with http:// or https://")
    if not host:
        raise ValueError("names no host")
    if port == 0:
        raise ValueError("names a port that is not a number from 1 to 65535")
    if _STRANGE.search(path + host):
        raise ValueError("has characters that the address of an archive cannot have")
    if ":" in host:
        host = "[%s]" % host
    if port is not None:
        host = "%s:%d" % (host, port)
    path = _REST.sub("", path).rstrip("/")
    return "%s://%s%s/api/v1" % (parts.scheme, host, path)


def block_id() -> Optional[str]:
    """The identifier in EB_ID, or None if it is missing or not valid."""
    text = os.environ.get("EB_ID", "")
    return text if valid_id(text) else None


def block_fault() -> str:
    """Why block_id returns None, without a full stop."""
    found = os.environ.get("EB_ID", "")[:200]
    return "EB_ID is not a valid identifier (it is %r)" % found if found else "EB_ID is not set"


def valid_id(text: str) -> bool:
    """Whether the archive accepts this identifier."""
    return bool(_IDENTIFIER.match(text)) and text not in ("create", "search")


def user(known: bool = False) -> Optional[str]:
    """The acting user: ODA_USER; else, where no token says who it is, whoever works here.

    That is the user of the JupyterHub, or else of the operating system. ``known`` says
    that there is a token besides those in the environment.
    """
    found = usable_user(os.environ.get("ODA_USER"))
    if found or known or os.environ.get("ODA_TOKEN") or os.environ.get("ODA_TOKEN_FILE"):
        return found
    return usable_user(os.environ.get("JUPYTERHUB_USER")) or _system_user()


def usable_user(name: Optional[str]) -> Optional[str]:
    """The name if the archive accepts it as a user, else None."""
    text = (name or "").strip()
    return text if 1 <= len(text) <= 256 and text.isprintable() else None


def _system_user() -> Optional[str]:
    try:
        return usable_user(pwd.getpwuid(os.getuid()).pw_name)
    except KeyError:  # as in a container that runs with any number
        return usable_user(os.environ.get("USER"))


def token() -> Optional[str]:
    """The token to send: ODA_TOKEN, or what is in the file ODA_TOKEN_FILE; None without them.

    The file is read each time, so a renewed token takes effect at once. This is the only
    setting that raises, ValueError or OSError: without its token a request is not sent. The
    error does not repeat the token.
    """
    text = os.environ.get("ODA_TOKEN", "").strip()
    path = os.environ.get("ODA_TOKEN_FILE")
    where = "ODA_TOKEN"
    if not text and path:
        where = "the file that ODA_TOKEN_FILE names, %s," % path
        try:
            with open(path, "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                text = file.read(_MOST_TOKEN).decode("latin-1").strip()
        except OSError as problem:
            raise OSError("%s cannot be read: %s" % (where, problem.strerror)) from None
        if os.name == "posix" and stat.S_ISREG(mode) and mode & 0o022:
            raise ValueError(
                "others than its owner can write %s and so choose the token; "
                "change that with: chmod go-w %s" % (where, path)
            )
        if not text:
            raise ValueError("%s is empty" % where)
    return usable_token(text, where) or None


def usable_token(text: str, where: str) -> str:
    """The token without the space around it; raises ValueError if it cannot be sent."""
    text = text.strip()
    if not _TOKEN.match(text):
        raise ValueError("%s is not one token, without spaces" % where)
    return text


def same_server(one: str, other: str) -> bool:
    """Whether two URLs have the same scheme, host and port."""
    servers = []
    for parts in (urlsplit(one), urlsplit(other)):
        usual = 443 if parts.scheme == "https" else 80
        servers.append((parts.scheme, parts.hostname, parts.port or usual))
    return servers[0] == servers[1]


def proxy(secure: bool, host: str, port: Optional[int]) -> Optional[SplitResult]:
    """The proxy that the environment names for a host, if any; never one for this machine.

    Raises ValueError for a proxy that cannot be used. The error does not repeat its address,
    which may contain a password.
    """
    # Imported when a connection is opened: it takes long.
    import urllib.request

    proxies = urllib.request.getproxies_environment()
    found = proxies.get("https" if secure else "http") or proxies.get("all")
    if not found or loopback(host):
        return None
    # It is as old and as public as the other, but type checkers do not know it.
    bypass: Callable[[str, Dict[str, str]], bool] = getattr(
        urllib.request, "proxy_bypass_environment"
    )
    if bypass("%s:%d" % (host, port) if port else host, proxies):
        return None
    try:
        parts = urlsplit(found if "://" in found else "http://" + found)
        port = parts.port
    except ValueError:
        port = 0
    # A special character in a password ends the host before the @.
    if port == 0 or parts.scheme != "http" or not parts.hostname or "@" in "".join(parts[2:]):
        raise ValueError(
            "the proxy that the environment names is not like http://user:password@proxy:3128, "
            "with special characters of the password as %23, which is #"
        )
    return parts


def loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def exit_timeout() -> float:
    """How many seconds a process may wait for the archive when it ends."""
    try:
        seconds = float(os.environ.get("ODA_EXIT_TIMEOUT", ""))
    except ValueError:
        return DEFAULT_EXIT_TIMEOUT
    return seconds if 0 <= seconds <= 3600 else DEFAULT_EXIT_TIMEOUT


def spool_limit() -> int:
    """How many bytes of a session may wait for the archive."""
    found = _SIZE.match(os.environ.get("ODA_SPOOL_LIMIT", "").strip())
    return int(found.group(1)) * _UNITS[found.group(2)] if found else DEFAULT_LIMIT


def sync_policy() -> str:
    """When records are synced to disk: interval, always or never."""
    text = os.environ.get("ODA_SPOOL_SYNC", "").strip().lower()
    return text if text in ("always", "never") else "interval"


def spool_folder() -> str:
    """The folder that should be the spool."""
    # The archive's own tools use the same default.
    return os.path.abspath(os.path.expanduser(os.environ.get("ODA_SPOOL") or DEFAULT_SPOOL))


def spare_folder() -> str:
    """The folder to use if that one cannot be; raises OSError if there is none."""
    return os.path.join(tempfile.gettempdir(), "oda-spool-%d" % os.geteuid())


def spare_folders() -> List[str]:
    """The spare spools of this user among the temporary files, where everybody can make folders."""
    try:
        first = spare_folder()
        temporary, name = os.path.split(first)
        more = sorted(each for each in os.listdir(temporary) if each.startswith(name + "-"))
    except OSError:
        return []
    found = []
    for path in [first] + [os.path.join(temporary, each) for each in more]:
        try:
            info = os.lstat(path)
        except OSError:
            continue
        if stat.S_ISDIR(info.st_mode) and own(info):
            found.append(path)
    return found


def search_folders(spool: str) -> List[str]:
    """The spool in use, and other folders if something may have been left there."""
    wished = spool_folder()
    others = [wished] if os.path.lexists(wished) else []
    return list(dict.fromkeys([spool] + others + spare_folders()))


def make_spool(folder: str) -> Folder:
    """Makes the folder and opens it, or raises OSError if it cannot be used."""
    _make(folder)
    opened = Folder(folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError("%s cannot be written" % folder)
    return opened


def _make(folder: str) -> None:
    """Makes a folder and those above it, all for this user alone."""
    if not os.path.lexists(folder):
        _make(os.path.dirname(folder))
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass  # another process was faster


def make_spare() -> Folder:
    """Makes a spool among the temporary files; raises OSError if that is not possible."""
    for folder in [spare_folder()] + spare_folders():
        try:
            return make_spool(folder)
        except PermissionError:
            continue  # somebody else has taken the name
    first = spare_folder()
    name = os.path.basename(first) + "-"
    return Folder(tempfile.mkdtemp(prefix=name, dir=os.path.dirname(first)))

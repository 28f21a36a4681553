"""Made-up credentials of documented shapes, and the lines of ordinary notes, for property tests.

Written by this project from the vendors' pages that ``secret_rules.toml`` names and from general
knowledge of what developers write; not held-out data. Every secret is random: none stands here.
"""

import base64
import random
import string
from collections.abc import Callable

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM = string.ascii_letters + DIGITS
HEX = "0123456789abcdef"
URL = ALNUM + "_-"
CRYPT = "./" + ALNUM
DJANGO = LOWER + DIGITS + "!@#$%^&*(-_=+)"  # get_random_secret_key
SIGNS = "!#%&*+?@^~$"

Draw = random.Random
Make = Callable[[Draw], str]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_STEMS = _words(
    "winter sommer falcon dragon monkey purple guitar castle orange silver rocket hunter "
    "tiger anchor bridge candle desert engine forest garden hammer island jungle kitten "
    "lemon "
)
_WORDS = _words(
    "alpha service region customer order billing worker primary replica staging release "
    "checkout payment profile search upload report legacy canary rollout feature gateway "
    "cluster node tenant project session cache queue topic backup restore nightly weekly "
    "stable "
)
_HOSTS = ("db", "cache", "queue", "mail", "git", "vault")


def some(draw: Draw, alphabet: str, count: int) -> str:
    """Return random characters, a letter and a digit among them where the alphabet has both."""
    kinds = [[c for c in alphabet if c.isdigit()], [c for c in alphabet if c.isalpha()]]
    results = [draw.choice(kind) for kind in kinds if kind]
    results += [draw.choice(alphabet) for _ in range(count - len(results))]
    draw.shuffle(results)
    return "".join(results)


def password(draw: Draw) -> str:
    """Return a password as people and generators make them: a sign, digits, both cases."""
    stem = draw.choice(_STEMS)
    kind = draw.randrange(4)
    if kind == 0:
        return f"{stem.title()}{draw.randrange(10, 9999)}{draw.choice('!#%&*+?@')}"
    if kind == 1:
        other = draw.choice(_STEMS).title()
        return f"{stem}{draw.randrange(1, 9)}-{other}-{draw.randrange(99, 9999)}"
    if kind == 2:
        leet = stem.translate(str.maketrans("aeo", "430"))
        return f"{leet.title()}{draw.choice('#%&*+@^')}{draw.choice(_STEMS)}{draw.randrange(9)}"
    return _generated(draw)


def _generated(draw: Draw) -> str:
    body = [draw.choice(LOWER), draw.choice(UPPER), draw.choice(DIGITS), draw.choice("#%&*+@^")]
    body += [draw.choice(ALNUM + "#%&*+@^") for _ in range(draw.randrange(8, 20))]
    draw.shuffle(body)
    inner = "".join(body)
    return f"{draw.choice(ALNUM)}{inner}{draw.choice(ALNUM)}"


def _jwt_part(draw: Draw) -> str:
    payload = f'{{"u":"{some(draw, LOWER, 8)}","a":"c{some(draw, LOWER + DIGITS, 24)}"}}'
    return base64.urlsafe_b64encode(payload.encode()).decode().rstrip("=")


def _sentry(draw: Draw) -> str:
    payload = (
        f'{{"iat":{draw.randrange(10**9, 2 * 10**9)}.1,"url":"https://sentry.io","org":"acme"}}'
    )
    first = base64.b64encode(payload.encode()).decode()
    return "sntrys" + f"_{first}_{some(draw, ALNUM + '+/', 43)}"


# What the vendors document: each stands alone, without a word that says what it is.
TOKENS: dict[str, Make] = {
    "notion": lambda d: "ntn" + "_" + some(d, DIGITS, 11) + some(d, ALNUM, 35),
    "notion-free": lambda d: "ntn" + "_" + some(d, ALNUM, d.randrange(40, 50)),
    "supabase-access": lambda d: "sbp" + "_" + some(d, HEX, 40),
    "supabase-secret": lambda d: "sb" + "_secret_" + some(d, URL, 22) + "_" + some(d, URL, 8),
    "figma": lambda d: "figd" + "_" + some(d, URL, d.randrange(40, 44)),
    "sentry-organisation": _sentry,
    "mapbox-secret": lambda d: "sk" + f".{_jwt_part(d)}.{some(d, URL, 22)}",
    "tailscale": lambda d: "tskey" + f"-auth-{some(d, ALNUM, 12)}CNTRL-{some(d, ALNUM, 32)}",
    "github": lambda d: "ghp" + "_" + some(d, ALNUM, 36),
    "gitlab": lambda d: "glpat" + "-" + some(d, URL, 20),
    "stripe": lambda d: "sk" + "_live_" + some(d, ALNUM, 24),
    "slack": lambda d: "xoxb" + f"-{some(d, DIGITS, 12)}-{some(d, ALNUM, 24)}",
    "npm": lambda d: "npm" + "_" + some(d, ALNUM, 36),
    "shopify": lambda d: "shpat" + "_" + some(d, HEX, 32),
}
# What a program or a file format says a password is.
LINES: dict[str, Make] = {
    "redis-url": lambda d: f"redis://:{some(d, ALNUM, 16)}@{d.choice(_HOSTS)}:6379/0",
    "sshpass": lambda d: f"sshpass -p '{password(d)}' ssh deploy@build{d.randrange(9)}",
    "mysql": lambda d: f"mysql -u root -p{password(d)} -h {d.choice(_HOSTS)} app",
    "mysqldump": lambda d: f"mysqldump --user=app --password={password(d)} app > dump.sql",
    "netrc": lambda d: f"machine {d.choice(_HOSTS)}.lan login bob password {password(d)}",
    "pgpass": lambda d: f"{d.choice(_HOSTS)}.lan:5432:app:bob:{some(d, ALNUM, 14)}",
    "htpasswd-md5": lambda d: f"bob:$apr1${some(d, CRYPT, 8)}${some(d, CRYPT, 22)}",
    "htpasswd-bcrypt": lambda d: f"bob:$2y$05${some(d, CRYPT, 53)}",
    "htpasswd-sha": lambda d: "bob:{SHA}" + some(d, ALNUM + "+/", 27) + "=",
    "shadow": lambda d: f"bob:$6${some(d, CRYPT, 16)}${some(d, CRYPT, 86)}:19723:0:99999:7:::",
    "shadow-yescrypt": lambda d: (
        f"bob:$y$j9T${some(d, CRYPT, 22)}${some(d, CRYPT, 43)}:19723::::::"
    ),
    "cookie-django": lambda d: f"Cookie: sessionid={some(d, LOWER + DIGITS, 32)}; theme=dark",
    "cookie-express": lambda d: f"connect.sid=s%3A{some(d, URL, 32)}.{some(d, ALNUM, 43)}",
    "cookie-set": lambda d: f"Set-Cookie: sid={some(d, ALNUM, 40)}; HttpOnly; Secure",
    "cookie-php": lambda d: f"PHPSESSID={some(d, LOWER + DIGITS, 26)}",
    "django-key": lambda d: f"SECRET_KEY = 'django-insecure-{some(d, DJANGO, 50)}'",
    "django-key-bare": lambda d: f'SECRET_KEY = "{some(d, DJANGO, 50)}"',
}
_ASK = ("password", "Password", "pw", "Passwort", "contraseña", "mot de passe", "db password")
# What people write in a note.
SENTENCES: dict[str, Make] = {
    "blank": lambda d: f"{d.choice(_ASK)} {password(d)}",
    "blank-in-text": lambda d: f"The staging {d.choice(_ASK)} {password(d)} works for everybody",
    "for": lambda d: f"password for {d.choice(_HOSTS)} {password(d)}",
    "colon": lambda d: f"{d.choice(_ASK)}: {password(d)}",
    "is": lambda d: f"the password of the {d.choice(_HOSTS)} host is {password(d)}",
    "german": lambda d: f"Das Passwort ist {password(d)}",
    "login": lambda d: f"login {_generated(d)}",
    "secret": lambda d: f"secret {_generated(d)}",
    "login-pair": lambda d: f"login: admin / {_generated(d)}",
}


def _slug(draw: Draw, joint: str) -> str:
    parts = [draw.choice(_WORDS) for _ in range(draw.randrange(2, 4))]
    extra = (
        f"v{draw.randrange(1, 20)}",
        str(draw.randrange(2015, 2031)),
        f"q{draw.randrange(1, 5)}",
    )
    parts.insert(draw.randrange(1, len(parts) + 1), draw.choice(extra))
    return joint.join(parts)


def _date(draw: Draw) -> str:
    return f"{draw.randrange(2015, 2031)}-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}"


def _uuid(draw: Draw) -> str:
    return "-".join(some(draw, HEX, count) for count in (8, 4, 4, 4, 12))


_KINDS = _words(
    "primary foreign partition sort cache flag feature object routing idempotency "
    "translation config lookup index registry composite "
)
_SCHEMES = _words(
    "oauth2-pkce-s256 oauth2-device-code jwt-rs256 basic-over-tls13 saml2-redirect "
    "oidc-code-s256 mtls-x509-v3 hmac-sha256-v1 aws-sigv4 argon2id-m64-t3 ed25519-v2 "
    "pbkdf2-sha512 "
)
_TOPICS = _words(
    "rotation policy reset hashing hint field prompt manager strength expiry flow page "
    "form button screen check change "
)
# What is no secret, however much it looks like an assignment of one.
ORDINARY: dict[str, Make] = {
    "kind-of-key": lambda d: f"{d.choice(_KINDS)} key: {_slug(d, d.choice('-_.'))}",
    "kind-of-key-uuid": lambda d: f"{d.choice(_KINDS)} key: {_uuid(d)}",
    "kind-of-key-hash": lambda d: f"{d.choice(_KINDS)}_key = {some(d, HEX, 40)}",
    "auth": lambda d: f"auth: {d.choice(_SCHEMES)}",
    "auth-list": lambda d: f"- auth method `{d.choice(_SCHEMES)}` since {_date(d)}",
    "key-slug": lambda d: f"key: {_slug(d, d.choice('-_.'))}",
    "token-words": lambda d: f"token {d.choice(_TOPICS)} moved to {_slug(d, '-')}",
    "password-words": lambda d: f"password {d.choice(_TOPICS)} {_slug(d, '-')}",
    "password-algorithm": lambda d: f"password hash {d.choice(_SCHEMES)} since {_date(d)}",
    "password-slug": lambda d: f"password {_slug(d, '-')} is the name of the branch",
    "login-words": lambda d: f"login {d.choice(_TOPICS)} v{d.randrange(1, 9)}.{d.randrange(20)}",
    "login-oauth": lambda d: f"login {d.choice(_SCHEMES)} behind the {_slug(d, '-')} flag",
    "secret-words": lambda d: f"secret {d.choice(_TOPICS)} {_slug(d, '_')} in Vault",
    "sha": lambda d: f"commit {some(d, HEX, 40)} fixes the {d.choice(_WORDS)} {d.choice(_TOPICS)}",
    "short-sha": lambda d: f"password check fixed in {some(d, HEX, 8)}",
    "digest": lambda d: f"image: registry.lan/app@sha256:{some(d, HEX, 64)}",
    "integrity": lambda d: f'"integrity": "sha512-{some(d, ALNUM + "+/", 86)}=="',
    "session": lambda d: f"session_id: {_uuid(d)}",
    "issue": lambda d: (
        f"password {d.choice(_TOPICS)} see PROJ-{d.randrange(1, 9999)} of {_date(d)}"
    ),
    "version": lambda d: f"passwords package@{d.randrange(9)}.{d.randrange(20)}.{d.randrange(9)}",
    "path": lambda d: f"key: config/{_slug(d, '-')}/settings",
    "camel": lambda d: (
        f"authProvider: {''.join(w.title() for w in d.sample(_WORDS, 2))}V{d.randrange(9)}"
    ),
    "flag": lambda d: f"ENABLE_{_slug(d, '_').upper()}_TOKEN=true",
    "time": lambda d: f"token refresh at {_date(d)}T{d.randrange(24):02}:{d.randrange(60):02}:00Z",
    "address": lambda d: f"secret server 10.0.{d.randrange(256)}.{d.randrange(256)}:8200",
    "environment": lambda d: f"password = ${{{d.choice(_WORDS).upper()}_PASSWORD}}",
    "mail": lambda d: f"login {d.choice(_STEMS)}{d.randrange(99)}@corp.example for the portal",
    "wrapped": lambda d: f"the branch {_slug(d, '-')}\n{_slug(d, '-')} was merged on {_date(d)}",
}

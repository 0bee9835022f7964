"""Secrets and prose that can be recognised wherever they turn up.

Made by a fixed seed at run time: nothing in this file looks like a secret, so a source line that is
quoted with a stack is not taken for a leak.
"""

import base64
import json
import random
import string
from dataclasses import dataclass

_LETTERS = string.ascii_letters + string.digits
_dice = random.Random(67)


def noise(length: int = 24, alphabet: str = _LETTERS) -> str:
    """Letters and digits that nobody else has."""
    return "".join(_dice.choice(alphabet) for _ in range(length - 2)) + "7Q"


@dataclass(frozen=True, slots=True)
class Canary:
    """Something that must not get out: how it is written down, and what to look for."""

    name: str
    text: str
    """As it stands in a message: with whatever shows that it is a secret."""
    secret: str

    @property
    def traces(self) -> tuple[str, ...]:
        """The secret, and either end of it: half a secret is a leak too."""
        return (
            (self.secret, self.secret[:12], self.secret[-12:]) if len(self.secret) >= 24 else (self.secret,)
        )


def _shaped(prefix: str, body: str) -> Canary:
    # Only the part behind the prefix is looked for; that a key was an `sk-` key is no secret.
    return Canary(f"token {prefix}", f"{prefix}{body}", body)


def _encoded(value: dict[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


_HEX = "0123456789abcdef"
_UPPER = string.ascii_uppercase + string.digits
_jwt_body = _encoded({"sub": noise(30)})
_pem_body = noise(64) + "\n" + noise(64)
_basic = base64.b64encode(f"user:{noise(12)}".encode()).decode()

SHAPED: tuple[Canary, ...] = (
    *(
        _shaped(prefix, noise(32))
        for prefix in (
            "sk-", "sk-proj-", "sk-ant-api03-", "sk_live_", "rk_live_", "pk_live_", "r8_", "hf_", "gsk_", "xai-",
            "pplx-", "nvapi-", "tgp_v1_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "github_pat_", "npm_",
            "pypi-", "dop_v1_", "shpat_", "lsv2_pt_", "org-", "proj_", "acct_", "whsec_", "xoxb-", "xoxp-", "fw_",
            "jina_", "voyage-", "sess-", "AIza", "ya29.",
        )
    ),
    *(Canary(f"token {prefix}", prefix + key, key) for prefix, key in (("AKIA", noise(16, _UPPER)), ("ASIA", noise(16, _UPPER)))),
    Canary("sendgrid", f"SG.{(first := noise(22))}.{(second := noise(43))}", second),
    Canary("jwt", f"{_encoded({'alg': 'HS256', 'typ': 'JWT'})}.{_jwt_body}.{noise(43)}", _jwt_body),
    Canary(
        "fal key",
        "-".join("".join(_dice.choice(_HEX) for _ in range(n)) for n in (8, 4, 4, 4, 12))
        + ":"
        + (fal := "".join(_dice.choice(_HEX) for _ in range(32))),
        fal,
    ),
)  # fmt: skip
"""Recognised by what they look like, wherever they stand."""

TOLD: tuple[Canary, ...] = (
    *(
        Canary(name, before + (value := noise(20)) + after, value)
        for name, before, after in (
            ("password in a url", "postgres://admin:", "@db.acme.test:5432/main"),
            ("password with an @", "mysql://root:p@", "@db.acme.test/main"),
            ("token as a user", "https://", "@git.acme.test/repo.git"),
            ("password in a query", "https://api.acme.test/v1?page=2&access_token=", "&x=1"),
            ("key in a query", "GET https://maps.acme.test/geo?key=", " failed"),
            ("bearer", "Authorization: Bearer ", "\n"),
            ("bearer in prose", "sent with bearer ", " and refused"),
            ("header in a repr", "{'x-api-key': '", "', 'accept': '*/*'}"),
            ("header as bytes", "[(b'x-api-key', b'", "'), (b'accept', b'*/*')]"),
            ("cookie", "Cookie: theme=dark; session_id=", "; path=/\n"),
            ("cookie in quotes", 'Cookie: theme="dark"; sid="', '"; path=/\n'),
            ("set-cookie", "set-cookie: sid=", "; HttpOnly\n"),
            ("assignment", "OPENAI_API_KEY=", " python run.py"),
            ("json", '{"client_secret": "', '", "grant_type": "x"}'),
            ("json in json", '{"body": "{\\"password\\": \\"', '\\"}"}'),
            ("yaml", "password: ", "\nuser: ada"),
            ("keyword argument", "Client(api_key='", "', timeout=3)"),
        )
    ),
    Canary("basic", f"Authorization: Basic {_basic}\n", _basic),
    Canary("pem", f"-----BEGIN RSA PRIVATE KEY-----\n{_pem_body}\n-----END RSA PRIVATE KEY-----", _pem_body),
)
"""Recognised by what stands beside them."""

IN_ENVIRONMENT = Canary("from the environment", (value := noise(18)), value)
REGISTERED = Canary("registered", (value := f"{noise(10)}/{noise(8)}+é"), value)
WITH_A_SLASH = Canary("begins like a path", (value := f"/{noise(30)}"), value)
KNOWN: tuple[Canary, ...] = (IN_ENVIRONMENT, WITH_A_SLASH, REGISTERED)
"""Recognised because somebody said so, or because a telling variable holds them."""

SECRETS: tuple[Canary, ...] = (*SHAPED, *TOLD, *KNOWN)
VARIABLES = {"BILLING_SERVICE_TOKEN": IN_ENVIRONMENT.secret, "AWS_SECRET_ACCESS_KEY": WITH_A_SLASH.secret}

SAID = "the minutes of the board meeting said that Vera would leave in April"
"""Prose in a message, an argument or a note: no pattern can know it."""
PROMPT = "Dear model, please summarise the diagnosis of patient Ottoline Quarles for her employer"
BODY = "Ottoline Quarles was treated for three weeks in the clinic at Lake Wend"
CARRIED: tuple[str, ...] = (PROMPT, BODY)
"""Prose in attributes, as SDKs keep prompts and replies; they print it into their messages too."""


def all_secrets() -> str:
    """Every secret, one under the other, as a careless message would have them."""
    return "\n".join(canary.text for canary in SECRETS)


def leaks(text: str, *, said: bool = False, carried: bool = True) -> list[str]:
    """The names of the canaries that `text` holds; prose only where it is asked for."""
    found = [canary.name for canary in SECRETS if any(trace in text for trace in canary.traces)]
    if said and SAID[4:30] in text:
        found.append("what was said")
    if carried:
        found += [f"carried: {one[:20]}" for one in CARRIED if one[5:40] in text or one[-30:] in text]
    return found

"""What command-line tools print: curl, git, kubectl, ssh, docker, npm, pip, databases' clients and shells.

curl numbers its failures and documents the numbers; kubectl prints the reasons of the Kubernetes API, registries the
codes of the OCI distribution specification, npm an `errno` name or `E` and a status. The other rows are sentences
that the tools' sources print for one condition each.
"""

import re
from typing import NamedTuple

from failwell.adapters.classification import Phase
from failwell.adapters.text.class_names import is_tls_alert
from failwell.errors.lazy_regex import lazy_regex


class ToolFacts(NamedTuple):
    """What a tool's message stands for: a status, a phase, an exit code or a kind."""

    tool: str
    rule: str
    status: int | None = None
    phase: Phase | None = None
    kind: str | None = None
    exit_code: int | None = None


_CURL = lazy_regex(
    r"\bcurl: \((?P<code>\d{1,3})\) ?(?P<text>[^\n]{0,500})|\bcurl error:? \(?(?P<library>\d{1,3})\)?\b",
    re.IGNORECASE,
)
_CURL_PHASES: dict[Phase, tuple[int, ...]] = {
    "dns": (6,),
    "connect": (7, 35, 96),
    "proxy": (5, 97),
    "tls": (51, 53, 54, 58, 59, 60, 64, 66, 77, 82, 83, 90, 91, 98),
    "write": (55, 65),
    "read": (28,),
    "closed": (16, 18, 52, 56, 92, 95),
}
_CURL_KINDS: dict[str, tuple[int, ...]] = {
    "validation.input_invalid": (1, 3, 43, 48),
    "provider.rejected": (4, 10, 19, 47, 63, 78),
    "provider.auth": (67, 94),
    "provider.permission": (9, 69),
    "provider.output_invalid": (8, 61),
    "resource.system_memory": (27,),
    "resource.disk": (23, 70),
    "validation.path_not_found": (26, 37),
    "cancel.run": (42,),
}
"""The exit codes of curl, as its manual lists them."""
_CURL_BY_CODE: dict[int, ToolFacts] = {
    **{
        code: ToolFacts("curl", f"curl_{code}", phase=phase)
        for phase, codes in _CURL_PHASES.items()
        for code in codes
    },
    **{
        code: ToolFacts("curl", f"curl_{code}", kind=kind)
        for kind, codes in _CURL_KINDS.items()
        for code in codes
    },
}
_CURL_CONNECTING = lazy_regex(r"connect|resolving|ssl|handshake", re.IGNORECASE)

_KUBERNETES = lazy_regex(
    r"\bError from server(?: \((?P<reason>\w{3,40})\))?: |\bYou must be logged in to the server(?: \((?P<login>\w{3,40})\))?"
    r"|\"reason\": ?\"(?P<json>[A-Z]\w{3,40})\", ?\"code\": ?\d{3}"
)
_REASONS: dict[str, int] = {
    "badrequest": 400, "invalid": 422, "unauthorized": 401, "forbidden": 403, "notfound": 404, "methodnotallowed": 405,
    "notacceptable": 406, "alreadyexists": 409, "conflict": 409, "gone": 410, "expired": 410, "requestentitytoolarge": 413,
    "unsupportedmediatype": 415, "toomanyrequests": 429, "internalerror": 500, "serverrejected": 500, "serviceunavailable": 503,
    "timeout": 504, "servertimeout": 500,
}  # fmt: skip
"""The reasons of the Kubernetes API and the statuses that the API sends with them."""

_REGISTRY = lazy_regex(
    r"\b(?:Error response from daemon|error pulling image|failed to (?:resolve|pull|push|copy|authorize|do request)|denied|errors?)\b[^\n]{0,300}?"
    r"\b(?P<code>toomanyrequests|unauthorized|denied|manifest unknown|name unknown|blob unknown)\b ?(?::|to\b|for\b|\n|$)"
    r"|^(?P<first>toomanyrequests|unauthorized|denied|manifest unknown|name unknown): ",
    re.IGNORECASE | re.MULTILINE,
)
_REGISTRY_STATUSES = {
    "toomanyrequests": 429, "unauthorized": 401, "denied": 403, "manifest unknown": 404, "name unknown": 404, "blob unknown": 404,
}  # fmt: skip
_NPM = lazy_regex(r"\bnpm (?:ERR!|error) code E(?P<status>[45]\d\d)\b")


_Sign = str | tuple[str, str]
"""A sentence that is printed as it stands, or a word that must occur and the pattern around it."""


class _Row(NamedTuple):
    facts: ToolFacts
    signs: tuple[_Sign, ...]


def _row(facts: ToolFacts, *signs: _Sign) -> _Row:
    return _Row(facts, signs)


_AUTH, _DENIED, _REJECTED = "provider.auth", "provider.permission", "provider.rejected"
_INPUT, _CONFIG, _BUSY = "validation.input_invalid", "validation.config_invalid", "tool.busy"
_MISSING = "extension.dependency_missing"

_SENTENCES: tuple[_Row, ...] = (
    _row(ToolFacts("shell", "shell_not_found", exit_code=127),
         "command not found", "is not recognized as an internal or external command", "is not recognized as the name of a cmdlet",
         "is not recognized as a name of a cmdlet", "executable file not found in", ("not found", r"^(?:\S{0,40}sh: (?:line )?\d{1,6}|exec): [^\n:]{1,200}: not found$"),
         ("env: ", r"^(?:/usr/bin/)?env: [^\n]{1,200}: No such file or directory$")),
    _row(ToolFacts("shell", "shell_not_executable", exit_code=126),
         "exec format error", ("sh: ", r"^\S{0,40}sh: [^\n]{1,200}: (?:Permission denied|cannot execute\b[^\n]{0,60}|Exec format error)$")),
    _row(ToolFacts("shell", "shell_variable", kind=_CONFIG), ("unbound variable", r"\b\w{1,80}: unbound variable$")),
    _row(ToolFacts("ssh", "ssh_key", kind=_AUTH),
         "Permission denied (publickey", "Permission denied (password", "Permission denied (keyboard-interactive", "Permission denied (gssapi",
         "Too many authentication failures", "ssh: unable to authenticate", "no supported methods remain"),
    _row(ToolFacts("ssh", "ssh_host_key", phase="tls"),
         "Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED", "knownhosts: key "),
    _row(ToolFacts("ssh", "ssh_no_reply", phase="connect"), "ssh_exchange_identification: ", "Error reading SSH protocol banner", "kex_exchange_identification: "),
    _row(ToolFacts("git", "git_authentication", kind=_AUTH),
         "fatal: Authentication failed for", "fatal: could not read Username for", "fatal: could not read Password for",
         "remote: Invalid username or ", "remote: Support for password authentication was removed", "remote: HTTP Basic: Access denied"),
    _row(ToolFacts("git", "git_permission", kind=_DENIED),
         "remote: Write access to repository not granted", "protected branch hook declined", "GH006: ", ("remote: Permission to", r"remote: Permission to \S{1,200} denied to\b")),
    _row(ToolFacts("git", "git_missing", kind=_REJECTED),
         "remote: Repository not found", "does not appear to be a git repository", "remote: The project you were looking for could not be found",
         ("fatal: repository", r"fatal: repository '[^'\n]{1,300}' (?:not found|does not exist)")),
    _row(ToolFacts("git", "git_locked", kind=_BUSY), "Another git process seems to be running", (".lock", r"Unable to create '[^'\n]{1,300}\.lock': File exists")),
    _row(ToolFacts("git", "git_branch", kind=_INPUT), ("error: src refspec ", r"error: src refspec \S{1,200} does not match any")),
    _row(ToolFacts("git", "git_rejected", kind=_REJECTED), "error: failed to push some refs", "! [rejected]", "! [remote rejected]"),
    _row(ToolFacts("git", "git_local", kind=_INPUT),
         "fatal: not a git repository", "fatal: ambiguous argument", "fatal: bad revision", "fatal: invalid reference", "CONFLICT (content)",
         "Automatic merge failed", "error: Your local changes to the following files would be overwritten", "fatal: refusing to merge unrelated histories",
         ("pathspec", r"(?:error|fatal): pathspec '[^'\n]{0,200}' did not match")),
    _row(ToolFacts("git", "git_closed", phase="closed"),
         "fatal: the remote end hung up unexpectedly", "fatal: early EOF", "unexpected disconnect while reading sideband packet", ("RPC failed", r"error: RPC failed; (?!HTTP)")),
    _row(ToolFacts("kubectl", "kubectl_connect", phase="connect"), ("connection to the server", r"The connection to the server \S{1,200} was refused")),
    _row(ToolFacts("kubectl", "kubectl_config", kind=_CONFIG),
         "error: no context exists with the name", "error: loading config file", "error: current-context", "no configuration has been provided", "no matches for kind",
         ("error: context", r'error: context "[^"\n]{0,200}" does not exist')),
    _row(ToolFacts("kubectl", "kubernetes_conflict", kind=_BUSY), "the object has been modified; please apply your changes"),
    _row(ToolFacts("kubectl", "kubectl_input", kind=_INPUT),
         "error: error parsing", "error: error validating", 'error: the path "', "error: unknown command", "error: unknown flag", "error: the server doesn't have a resource type"),
    _row(ToolFacts("docker", "docker_daemon", kind=_CONFIG), ("ocker daemon", r"[Cc](?:annot|ouldn't|ould not) connect to (?:the )?Docker daemon"), "Is the docker daemon running"),
    _row(ToolFacts("docker", "docker_input", kind=_INPUT),
         "invalid reference format", "No such container: ", "No such image: ", "No such volume: ", "No such network: "),
    _row(ToolFacts("docker", "docker_busy", kind=_BUSY), "port is already allocated", ("is already in use", r'container name "[^"\n]{0,200}" is already in use')),
    _row(ToolFacts("postgresql", "postgresql_authentication", kind=_AUTH),
         "password authentication failed for user", "no pg_hba.conf entry for", "fe_sendauth: no password supplied", ("FATAL", r'FATAL:\s+role "[^"\n]{1,100}" does not exist')),
    _row(ToolFacts("postgresql", "postgresql_capacity", status=503), "too many clients already", "remaining connection slots are reserved", "too many connections for role"),
    _row(ToolFacts("postgresql", "postgresql_starting", status=503),
         "the database system is starting up", "the database system is shutting down", "the database system is in recovery mode"),
    _row(ToolFacts("postgresql", "postgresql_conflict", kind=_BUSY), "could not serialize access due to", "deadlock detected"),
    _row(ToolFacts("postgresql", "postgresql_constraint", kind="provider.bad_request"), ("violates", r"violates (?:unique|foreign key|check|not-null|exclusion) constraint")),
    _row(ToolFacts("postgresql", "postgresql_missing", kind=_REJECTED), ("does not exist", r'\b(?:relation|column|schema|database|type) "[^"\n]{1,200}" does not exist')),
    _row(ToolFacts("mysql", "mysql_conflict", kind=_BUSY), "Deadlock found when trying to get lock", "Lock wait timeout exceeded"),
    _row(ToolFacts("mysql", "mysql_missing", kind=_REJECTED), ("Unknown database", r"Unknown database '"), ("doesn't exist", r"Table '[^'\n]{1,200}' doesn't exist")),
    _row(ToolFacts("pip", "pip_missing", kind=_MISSING), "No matching distribution found for", "Could not find a version that satisfies the requirement"),
    _row(ToolFacts("node", "node_module", kind=_MISSING), "Cannot find module '", "Cannot find package '", "MODULE_NOT_FOUND", 'failed to resolve import "', "Module not found: Error: Can't resolve"),
    _row(ToolFacts("node", "node_heap", kind="resource.system_memory"), "JavaScript heap out of memory", "Reached heap limit"),
    _row(ToolFacts("npm", "npm_resolve", kind=_CONFIG), ("npm ", r"npm (?:ERR!|error) code (?:ERESOLVE|ETARGET|EBADENGINE|EJSONPARSE)\b")),
    _row(ToolFacts("npm", "npm_login", kind=_AUTH), ("npm ", r"npm (?:ERR!|error) code (?:ENEEDAUTH|EOTP|EAUTHIP|EAUTHUNKNOWN)\b")),
    _row(ToolFacts("pip", "pip_environment", kind=_CONFIG), "externally-managed-environment"),
    _row(ToolFacts("mysql", "mysql_authentication", kind=_AUTH), ("Access denied for user", r"Access denied for user '[^'\n]{0,100}'@")),
    _row(ToolFacts("mysql", "mysql_read_only", kind="provider.rejected"), "server is running with the --read-only option", "server is running with the --super-read-only option"),
    _row(ToolFacts("mysql", "mysql_packet", kind="provider.context_too_long"), "Got a packet bigger than 'max_allowed_packet'", "Got a packet bigger than \\'max_allowed_packet"),
    _row(ToolFacts("aws", "aws_credentials", kind=_AUTH),
         "No valid credential sources found", "Unable to locate credentials", "could not find default credentials", "no EC2 IMDS role found"),
    _row(ToolFacts("ssh", "ssh_settings", kind=_CONFIG),
         "Unable to negotiate with ", "UNPROTECTED PRIVATE KEY FILE", "administratively prohibited", "Bad owner or permissions on ", "Bad configuration option: "),
    _row(ToolFacts("git", "git_settings", kind=_CONFIG),
         "fatal: unable to auto-detect email address", "fatal: detected dubious ownership in repository", "fatal: No configured push destination",
         "fatal: No such remote", "fatal: no remote configured"),
    _row(ToolFacts("git", "git_quota", kind="provider.quota_exhausted"), "is over its data quota"),
    _row(ToolFacts("git", "git_size", kind="provider.context_too_long"), "exceeds GitHub's file size limit of", "pack exceeds maximum allowed size"),
    _row(ToolFacts("pip", "pip_packages", kind=_MISSING),
         "ResolutionImpossible", "conflicting dependencies", ("Package '", r"Package '[^'\n]{1,100}' requires a different Python"), "DO NOT MATCH THE HASHES", "is not a supported wheel on this platform",
         "metadata-generation-failed", "Failed building wheel for "),
    _row(ToolFacts("npm", "npm_packages", kind=_MISSING),
         "ERR_PNPM_NO_MATCHING_VERSION", "ERR_PNPM_PEER_DEP_ISSUES", "No matching version found for", ("Couldn't find", r"Couldn't find (?:package|any versions for) \""),
         ("E404", r"npm (?:ERR!|error) code E404\b")),
    _row(ToolFacts("docker", "docker_settings", kind=_CONFIG),
         "could not select device driver", "no unqualified-search registries are defined", "Error loading config file: ", "no matching manifest for ", "permission denied while trying to connect to the Docker daemon socket"),
    _row(ToolFacts("docker", "docker_build", kind=_INPUT), ("failed to solve", r"failed to solve: [^\n]{0,400}(?:: not found|dockerfile parse error|unknown instruction)")),
    _row(ToolFacts("assert", "assertion", kind="internal.bug"), ("ssertion", r"\b[Aa]ssertion [`'\"][^\n]{1,300}['`\"] failed"), ("ASSERT(", r"\b[A-Z_]{0,20}ASSERT\([^\n]{1,300}\) failed")),
    _row(ToolFacts("pydantic", "pydantic_settings", kind=_CONFIG), ("validation error", r"(?:^|[:>] )\d{1,4} validation errors? for \w{0,80}Settings\b")),
    _row(ToolFacts("pydantic", "pydantic_fields", kind="validation.shape_invalid"), ("validation error", r"(?:^|[:>] )\d{1,4} validation errors? for [A-Za-z_]\w{0,80}\s")),
)  # fmt: skip


_UNSET = lazy_regex(
    r"\b[A-Z][A-Z0-9]{0,30}(?:_[A-Z0-9]{1,30}){1,8}['\"`]? (?:(?:environment )?variable )?(?:is|was|are) (?:not set|unset)\b"
)
"""A variable of the environment by its name: `SENDER_ADDRESS is not set`."""

SIGNS: tuple[tuple[str, re.Pattern[str] | None, ToolFacts], ...] = tuple(
    (sign, None, row.facts)
    if isinstance(sign, str)
    else (sign[0], lazy_regex(sign[1], re.MULTILINE), row.facts)
    for row in _SENTENCES
    for sign in row.signs
)
"""Every sign in the order of the rows: what must occur, the pattern around it, and what it stands for."""


def tool_facts(text: str) -> ToolFacts | None:
    """What a command-line tool printed in `text`, if a tool is recognised."""
    if ("url" in text or "URL" in text) and (curl := _curl(text)) is not None:
        return curl
    if ("server" in text or '"reason"' in text) and (kubernetes := _KUBERNETES.search(text)) is not None:
        reason = kubernetes["reason"] or kubernetes["login"] or kubernetes["json"]
        status = _REASONS.get((reason or "").lower())
        if reason is None and kubernetes["reason"] is None and "logged in" in kubernetes[0]:
            status = 401
        if status is not None:
            return ToolFacts("kubectl", f"kubernetes_{(reason or 'unauthorized').lower()}", status=status)
    npm = _NPM.search(text) if "npm " in text else None
    if npm is not None:
        return ToolFacts("npm", f"npm_e{npm['status']}", status=int(npm["status"]))
    if "_" in text and _UNSET.search(text) is not None:
        return ToolFacts("environment", "variable_unset", kind=_CONFIG)
    for word, pattern, facts in SIGNS:
        if word in text and (pattern is None or pattern.search(text) is not None):
            return facts
    low = text.lower()
    registry = _REGISTRY.search(text) if any(code in low for code in _REGISTRY_STATUSES) else None
    if registry is not None:
        code = (registry["code"] or registry["first"]).lower()
        return ToolFacts("docker", f"registry_{code.replace(' ', '_')}", status=_REGISTRY_STATUSES[code])
    return None


def _curl(text: str) -> ToolFacts | None:
    match = _CURL.search(text)
    if match is None:
        return None
    code = int(match["code"] or match["library"])
    facts = _CURL_BY_CODE.get(code)
    if is_tls_alert(text):
        return ToolFacts("curl", f"curl_{code}", phase="tls")
    if code == 28 and _CURL_CONNECTING.search(match["text"] or text[match.end() :][:100]):
        return ToolFacts("curl", "curl_28", phase="connect")
    return facts or ToolFacts("curl", f"curl_{code}")

"""The tables of machine evidence: what statuses and codes mean, for every provider.

A code means a kind, or it stands for a status (`invalid_argument` is a 400 in a word). Codes that are made of plain
words (`insufficient_quota`, `ModelNotFoundException`) are read as words and need no row here.
"""

import re

from failwell.adapters.protocols import vendor_codes
from failwell.errors.lazy_regex import lazy_regex

QUOTA, RATE, OVER = "provider.quota_exhausted", "provider.rate_limited", "provider.overloaded"
DOWN, AUTH, PERM = "provider.unavailable", "provider.auth", "provider.permission"
MODEL, CAPABILITY, BAD = "provider.model_not_found", "provider.capability_missing", "provider.bad_request"
LONG, REFUSED, UNSURE = "provider.context_too_long", "provider.content_refused", "provider.outcome_unknown"
REJECTED, THROWN, CONNECTION = "provider.rejected", "provider.output_rejected", "provider.connection"

_KINDS_OF_CODES: dict[str, str] = {
    QUOTA: "arrearage billing_hard_limit_reached exhausted_balance billing_disabled gousagelimiterror",
    OVER: "3505 modelnotreadyexception slow_down",
    MODEL: "model_not_available model_not_supported reponotfound revisionnotfound",
    "provider.permission": "gatedrepo gatedrepoerror disabledrepo disabledrepoerror",
    LONG: "3051 string_above_max_length request_too_large model_length",
    REFUSED: "safety prohibited_content image_safety recitation blocklist spii refusal guardrail_intervened content_filter "
    "content_filtered image_recitation image_prohibited_content unsafe_content sensitive_content content_policy_violation "
    "contentpolicyviolation responsibleaipolicyviolation moderation_blocked public_error_unsafe_generation invalid_prompt",
    THROWN: "tool_use_failed failed_generation model_error json_validate_failed modelerrorexception "
    "modelstreamerrorexception malformed_function_call",
    "provider.output_truncated": "lengthfinishreasonerror",
    "provider.output_invalid": "apiresponsevalidationerror responsevalidationerror",
    CAPABILITY: "unsupportedparamserror",
    REJECTED: "noregionerror endpointprovidererror unknownserviceerror invalidregionerror unknownendpointerror "
    "unsupportedprotocol invalidurl missingschema",
    BAD: "entrynotfound",
    UNSURE: "apiconnectionerror websocketconnectionclosederror apitimeouterror",
}
CODES: dict[str, str] = {
    **{code: kind for kind, codes in vendor_codes.rows().items() for code in codes},
    **{code: kind for kind, codes in _KINDS_OF_CODES.items() for code in codes.split()},
}
"""Codes whose words do not say what they mean → the kind. One of a single provider is written as `provider:code`."""

_CANCELLED = "apiuseraborterror clientclosedrequesterror breakpointexception"
_BUGS = "nullreferenceexception nullpointerexception"
CLASSES: dict[str, str] = {
    **dict.fromkeys(_CANCELLED.split(), "cancel.run"),
    **dict.fromkeys(_BUGS.split(), "internal.bug"),
}
"""Names of client classes alone. A provider that sends such a name as a code cancels nothing here."""

_FAMILIES: tuple[tuple[str, str], ...] = (
    (REJECTED, r"cannotpull|imagepull|imagenotfound"),
    (
        "extension.dependency_missing",
        r"notinstalled|missing(?:cuda|driver|library|package|module|plugin)|(?:missing|optional)dependency|dependency(?:missing|notfound|notinstalled)?$",
    ),
    (
        "extension.dependency_missing",
        r"(?:packages?|module|library|driver|executable|binary|feature|plugin|command)not(?:found|available)|(?:package|module|plugin)unavailable",
    ),
    (
        "extension.dependency_missing",
        r"(?:version|driver|cuda|abi)mismatch|incompatible\w{0,20}version|no(?:backend|keyring|driver)$",
    ),
    (
        "validation.config_invalid",
        r"improperlyconfigured|misconfigur|notconfigured|unconfigured|(?:config|configuration|settings?)$",
    ),
    (
        "validation.config_invalid",
        r"(?:config|configuration|settings?|profile|template)(?:file)?(?:notfound|missing|invalid)|sessionnotcreated|no(?:section|option)$",
    ),
    (
        AUTH,
        r"log[io]n(?:failed|failure|required|denied)?$|notloggedin|auth(?:failed|failure)?$|(?:expired|invalid|bad)(?:signature|credentials?|password|login)|expired(?:session|token)|invalidsession$",
    ),
    (AUTH, r"(?:signature|credentials?|session|token)(?:expired|invalid)|refresh$"),
    (
        PERM,
        r"(?:missing|insufficient|invalid)(?:scopes?|permissions?|privileges?|rights)|privileged\w{0,20}required",
    ),
    (
        CONNECTION,
        r"serverselection|unambiguoustimeout|(?:socket|connection)open$|connectionrefused|connect(?:ion)?fail(?:ed|ure)?$",
    ),
    (
        CONNECTION,
        r"no(?:brokers?|hosts?|servers?|nodes?|connections?)available|noservers$|unreachable|nameresolution|cannotconnect|dns(?:lookup)?$",
    ),
    (
        UNSURE,
        r"(?:connection|channel|socket|stream|comm|target|transport|link)(?:was)?(?:closed|lost|loss|reset|aborted|broken)",
    ),
    (
        UNSURE,
        r"(?<!stream)disconnected|brokenpipe|incompleteread|neverreceived|tooslow|noresponse|network$|(?:hard|soft)?timelimit(?:exceeded)?",
    ),
    (RATE, r"retryafter$|flood(?:wait|control)?$|pleasewait"),
    (PERM, r"(?:challenge|verification|captcha|consent|mfa|otp|twofactor)required"),
    (
        PERM,
        r"(?:ip|bot|user|account|access|request|domain|region|country|geo|ssrf|network)blocked$|(?:access|age|region|country|geo)restricted$|(?:user|account|keyring|wallet)locked$|notpermitted$",
    ),
    (CONNECTION, r"^pool(?:timedout|timeout|exhausted)|poolexhausted|poolacquire"),
    (OVER, r"(?:server|service|host|backend|exchange|node|cluster|broker|replica)notavailable$"),
    (
        "tool.busy",
        r"deadlock|^stale|(?:^|database|file|resource|table|row|record|state|object|document|index|queue|repository)locked$|^busy|busy$",
    ),
    (
        "tool.busy",
        r"(?<![bc])lock(?:timeout|timedout|wait|acquisition|conflict)|acquirelock|alreadylocked$|(?<!de)serializationfailure|optimisticlock|concurrent(?:modification|update)|^(?:transient|retryable)$|^tryagain|^again$",
    ),
    (
        "worker.crashed",
        r"^(?:dead|crashed|killed|terminated)worker$|(?:worker|process|executor|actor)(?:died|dead|lost|killed|crashed|terminated)$",
    ),
    ("resource.exhausted", r"no(?:available)?resources?|insufficientresources?"),
    ("resource.disk", r"diskfull|nospace|storefull|outofspace"),
    ("cancel.run", r"cancell?ed$|cancell?ation$|[a-z]interrupted$"),
    ("extension.dependency_missing", r"resolutionimpossible|(?:dependency|version)conflict$"),
    # What is released without having been locked: borg and lockfile.
    ("internal.bug", r"^notimplemented$|assertion|^notlocked$"),
)
CLASS_FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, lazy_regex(pattern)) for kind, pattern in _FAMILIES
)
"""Kind → how libraries name their classes for it, in lower case and without the ending `Error` or `Exception`.

Libraries that know nothing of each other name the same failure alike. The first row that fits decides.
"""
_CODE_FAMILIES: tuple[tuple[str, str], ...] = (
    (
        AUTH,
        r"notauthed|notloggedin|(?:log[io]n|challenge|verification|captcha|consent|mfa|otp|twofactor)required|authfail|bad(?:apikey|token|credentials?|auth|clientsecret)",
    ),
    (
        AUTH,
        r"(?:token|apikey|key|secret|session|credentials?|cookie)(?:is)?(?:revoked|blocked|expired|missing|unauthorized)",
    ),
    (
        AUTH,
        r"invalid(?:client$|clientid|grant|session|subscriptionkey|apptoken)|missingauthori[sz]ation|reauth",
    ),
    (
        PERM,
        r"(?:missing|insufficient|invalid)(?:scopes?|rights)|(?:resource|plan|feature|org\w{0,12})restricted|restrictedresource",
    ),
    (
        PERM,
        r"(?:user|account|project|organi[sz]ation|team|app|subscription)(?:is)?(?:disabled|suspended|blocked|banned|locked|deactivated|notregistered)",
    ),
    (
        QUOTA,
        r"overdue|arrears|unpaid|(?:free|prepaid|pack|pkg|package|bill)\w{0,20}(?:exhausted|exceeded|ended|usedup)",
    ),
    (
        RATE,
        r"over(?:query|rate)limit|^toomany[a-z]{0,20}?(?:operations|calls|queries|messages)$|concurren\w{1,12}limit|activitylimit",
    ),
    # What a request is made of, and then what an account has. The names are those of 47 and of 30 service models of AWS:
    # https://github.com/boto/botocore/tree/develop/botocore/data
    (
        BAD,
        r"^toomany[a-z]{0,40}?(?:tags|tagkeys|headers|cookies|parameters|arguments|fields|columns|querystrings|names|values|parts|entries)",
    ),
    (
        QUOTA,
        r"^toomany[a-z]{0,40}?(?:distributions|policies|groups|profiles|versions|balancers|certificates|configs|applications|templates|environments|platforms|accesspoints|listeners|registrations|rules|truststores|identities|origins|subscriptions|healthchecks|zones|instances|associations|publickeys)",
    ),
    (
        QUOTA,
        r"^(?:max(?:imum)?)?number(?:of)?(?!\w*(?:token|character|retr|attempt|request|connection))[a-z]{3,60}exceeded$",
    ),
    (
        PERM,
        r"notinplan|(?:not|un)subscribed|subscriptionrequired|optinrequired|notpermitted$|noauthori[sz]ation$|^authori[sz]ation$",
    ),
    (
        "tool.busy",
        r"locktimeout|unabletolock|lockwait|retrylater|tryagain|inprogress(?:failure)?$|alreadyrunning",
    ),
    (
        "tool.busy",
        r"notready(?:yet)?$|^(?:resource)?concurrent(?:update|updating|modification|operation|access|write)$|(?:stopping|transitioning|resuming)$",
    ),
    (QUOTA, r"(?:storage|disk|bucket|backend)full$|storageexceeded"),
    (OVER, r"resourceinsufficient|insufficient(?:resources?|capacity)|nocapacity|stockout"),
    (
        LONG,
        r"(?:msg|message|text|file|body|payload|string|name|input|audio|video|document|attachment|query|batch|media|policy|request|item|record)too(?:long|large|big)",
    ),
    (
        BAD,
        r"(?:entity|object|record|item)is(?:deleted|archived)|^isarchived",
    ),
    (
        BAD,
        r"too(?:short|small|few)$|divisionbyzero|^baduser|(?:resource|parameter|field|value)missing$|^no(?:text|user|file|data|content|message|name|query|id|item|record|result)s?$|^missing(?:version|param|field|value|arg)|^notin(?!it|stall)[a-z]{3,20}$",
    ),
)
CODE_FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, lazy_regex(pattern)) for kind, pattern in _CODE_FAMILIES
)
"""Kind → how services spell their codes for it, in lower case and without what separates the words."""
_LATE_CODE_FAMILIES: tuple[tuple[str, str], ...] = (
    (
        BAD,
        r"(?<!not)(?<!resource)inuse$|nonempty|^(?:illegal|incorrect)[a-z]{3,}|^cannot(?:delete|change|modify|update)|(?:name|(?<!pa)id|arn|path|content|value|type|title|list|option|field|parameter|limit|query|channel|user|date|size|count|range|e?mail|phone|address|file|message|body|text)s?required$",
    ),
    (
        BAD,
        r"^unknown(?:resource|user|operation|command|method|type|action|topic|group|member|object|entity|item|recipient)",
    ),
    (
        REJECTED,
        r"(?:key|endpoint|api|action|operation|feature|function|service|addon)(?:not(?:yet)?enabled|disabled)$|^disabled(?:api|operation|action)$|notinstalled$",
    ),
)
LATE_CODE_FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, lazy_regex(pattern)) for kind, pattern in _LATE_CODE_FAMILIES
)
"""The same for spellings that say little: they count where no word of the code says more (`incorrect_password`, `unknown_model`)."""
EXISTING = lazy_regex(
    r"(?<!not)exists$|(?<!non)(?<!is)notempty$|duplicate|(?:name|id|email|username|slug)taken$|already(?:in|is|has|used|taken)"
)
"""Codes for what is there at the next try too, whether the status is a conflict or not."""
REFUSED_INPUT = lazy_regex(
    r"(?:pars(?:e|er|ing)|decod(?:e|er|ing)|syntax|conversion|cast|schema|format|encoding|malformed|corrupt(?:ed)?|(?:de)?seriali[sz]ation|data|mismatch|integrity"
    r"|constraint(?:violation)?|duplicate\w{0,20}|analysis|binder|catalog|usage|(?:extra|empty|trailing)data|merge|disambiguation|notdecrypted|datatype"
    r"|type|shape|dimension|unknown\w{0,30}|unrecogni[sz]ed\w{0,30}|\w{0,30}violation|missing\w{0,30}|unsupported\w{0,30}|notsupported|notsupportedfor\w{0,20}|bad[a-z]{3,20}|unidentified\w{0,20}"
    r"|nosuch\w{2,20}|no(?:path|item|match|data|content|file|entity|record|object|solution|convergence)s?(?:found)?|no(?:node|key|field|column|index|element|result|row)s?(?:found)?|toolong|toolarge|exists|xmlsyntax|value|argument|parameter|option|programming"
    r"|ambiguous(?!foreign)[a-z]{3,40}|illegal(?![a-z]{0,20}(?:state|access))[a-z]{3,40}|(?:name|id|email)taken|(?:field|name|id|parameter|argument|value|url|length|input)required)(?:failure|failed)?$"
)
"""The last words of a class for input that a library does not take; they say what a 400 says."""

ABOUT_CONNECTION = lazy_regex(r"(?:connection|transport|communications?|comm)(?:error|exception)?$")
"""The last word of a class for anything that goes wrong on the way. It counts where nothing else is known."""

STATUS_CODES: dict[str, int] = {
    **vendor_codes.STATUSES, "api_error": 500, "limitexceededexception": 429, "limitexceeded": 429, "1300": 429, "requests": 429, "tokens": 429,
}  # fmt: skip
"""Codes that stand for a status and are no words for it."""

STATUS_WORDS: dict[str, int] = {
    "internalserver": 500, "servererror": 500, "internalerror": 500, "internal": 500,
    "badgateway": 502, "serviceunavailable": 503, "unavailable": 503, "overloaded": 529, "gatewaytimeout": 504,
    "deadlineexceeded": 504, "timeout": 408, "timedout": 408, "unauthorized": 401, "unauthenticated": 401, "authentication": 401,
    "permissiondenied": 403, "permission": 403, "authorizationfail": 403, "accessdenied": 403, "forbidden": 403, "notfound": 404,
    "alreadyexists": 409, "conflict": 409, "aborted": 409, "ratelimit": 429, "toomanyrequests": 429, "throttl": 429,
    "resourceexhausted": 429, "requestlimitexceeded": 429, "throughputexceeded": 429, "invalidrequest": 400, "badrequest": 400,
    "invalidargument": 400, "validation": 400, "failedprecondition": 400, "outofrange": 400, "unprocessable": 422,
    "unimplemented": 501, "contenttoolarge": 413, "invalid": 400,
}  # fmt: skip
"""Words in a code or the name of a class that stand for a status."""

KINDS_OF_STATUSES: dict[int, str] = {
    **dict.fromkeys(range(400, 500), REJECTED),
    **dict.fromkeys(range(500, 600), DOWN),
    **dict.fromkeys((400, 406, 411, 414, 415, 416, 417, 422), BAD),
    # What the request depends on failed: the model of an inference server, or the step before.
    424: DOWN,
    **dict.fromkeys((409, 425), DOWN),
    **dict.fromkeys((408, 499, 504, 524), UNSURE),
    **dict.fromkeys((521, 522, 523), CONNECTION),
    **dict.fromkeys((498, 503, 529), OVER),
    401: AUTH, 402: QUOTA, 403: PERM, 413: LONG, 429: RATE, 501: REJECTED, 505: REJECTED,
    # RFC 4918: the server has no room for what the request would store.
    507: QUOTA,
    # Portkey, for a guardrail that denied the request: https://portkey.ai/docs/api-reference/inference-api/error-codes
    446: REFUSED,
    # DeepL, "Error handling": the quota of the month.
    456: QUOTA,
}  # fmt: skip

_ANY = frozenset({QUOTA, AUTH, PERM, MODEL, CAPABILITY, LONG, REFUSED, BAD})
GENERIC: dict[int, frozenset[str]] = {
    400: _ANY,
    # SendGrid and others answer 401 where the credits are used up. No word makes it more than that.
    401: frozenset({QUOTA}),
    403: frozenset({QUOTA, AUTH, MODEL, CAPABILITY, REFUSED}),
    404: frozenset({MODEL, CAPABILITY, PERM, AUTH}),
    409: frozenset({BAD, QUOTA}),
    422: _ANY,
    429: frozenset({QUOTA, LONG, OVER, RATE}),
    500: frozenset({QUOTA, AUTH, OVER, RATE}),
    **dict.fromkeys((406, 412, 423, 424, 451), _ANY),
    # Statuses that no registry knows say only whose mistake it was.
    **dict.fromkeys(
        (419, 420, 427, 430, *range(432, 446), *range(447, 451), *range(452, 456), *range(457, 498)),
        _ANY | {RATE},
    ),
}
"""Statuses that services use for more than their name says → what words may turn them into.

Every other status stands whatever the words are: no word makes a 401 repeatable or a 5xx the caller's mistake.
"""

_BY_CALLER, _PASSING = frozenset({*range(400, 500), 529}), frozenset({429, 503, 504, 529})
GIVING_WAY: dict[int, frozenset[int]] = {
    400: _BY_CALLER,
    422: _BY_CALLER,
    403: frozenset({401, 429}),
    500: _PASSING,
    502: _PASSING,
}
"""Statuses that give way to a code → the statuses that the code may stand for. None blames the server's own fault on the caller."""

SERVERS_OF_ONE_STATUS = frozenset({"llamacpp", "llama.cpp", "ollama"})
"""Local servers that answer 500 to whatever they do not accept, as their sources show. There a 500 is generic too."""

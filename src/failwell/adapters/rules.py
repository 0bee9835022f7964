"""The rule table: what a provider's code, status or words mean, for every provider.

Rows are tried in order and the first that fits wins. The order of evidence is: code and type, then
statuses that say all, then headers, then words, and last the status ladder, which holds where
nothing more specific matches. A row that names words costs a search, so it also names a word that
must be there before the pattern is tried.
"""

import re
from dataclasses import dataclass

from failwell.adapters.protocols import vendor_codes


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One row. Everything it names must hold."""

    name: str
    kind: str
    basis: str
    codes: frozenset[str] = frozenset()
    statuses: frozenset[int] = frozenset()
    words: tuple[str, ...] = ()
    """One of these lower-case words must occur before the pattern is tried."""
    pattern: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None


def _code(kind: str, name: str, codes: str, words: str = "", pattern: str = "", unless: str = "") -> Rule:
    return Rule(
        f"{kind.partition('.')[2]}.{name}",
        kind,
        "code",
        codes=frozenset(codes.split()),
        words=tuple(words.split("|")) if words else (),
        pattern=_compiled(pattern),
        unless=_compiled(unless),
    )


def _words(kind: str, name: str, words: str, pattern: str, unless: str = "") -> Rule:
    return Rule(
        f"{kind.partition('.')[2]}.{name}",
        kind,
        "message",
        words=tuple(words.split("|")),
        pattern=_compiled(pattern),
        unless=_compiled(unless),
    )


def _status(kind: str, *statuses: int) -> Rule:
    return Rule(f"status_{statuses[0]}", kind, "status", statuses=frozenset(statuses))


def _compiled(pattern: str) -> re.Pattern[str] | None:
    # Texts are lower-cased once, before any rule reads them; ignoring case costs a search twice its time.
    return re.compile(pattern) if pattern else None


_QUOTA, _RATE, _OVER = "provider.quota_exhausted", "provider.rate_limited", "provider.overloaded"
_DOWN, _AUTH, _PERM = "provider.unavailable", "provider.auth", "provider.permission"
_MODEL, _CAPABILITY, _BAD = "provider.model_not_found", "provider.capability_missing", "provider.bad_request"
_LONG, _REFUSED, _UNSURE = "provider.context_too_long", "provider.content_refused", "provider.outcome_unknown"
_REJECTED, _THROWN = "provider.rejected", "provider.output_rejected"

_RATE_CODES = (
    "rate_limit_exceeded rate_limit_error rate_limited rate_limit ratelimitreached ratelimitexceeded "
    "too_many_requests toomanyrequests throttlingexception throttling throttled requestlimitexceeded "
    "resource_exhausted model_rate_limit toomanyrequestsexception provisionedthroughputexceededexception "
    "limitexceededexception throttling.ratequota throttling.burstrate linkuptoomanyrequestserror "
    "ratelimiterror toomanyrequestserror"
)
_WINDOW_OVER_A_DAY = r"per[-_ ]?day|\b[tr]pd\b|daily|per[-_ ]?week|weekly|per[-_ ]?month|monthly|perday|perweek|permonth|/ ?(?:day|week|month)\b"

CODES: tuple[Rule, ...] = (
    # A request bigger than the whole window never fits, however long one waits.
    _code(_LONG, "larger_than_window", _RATE_CODES + " tokens", words="too large|larger than|must be reduced",
          pattern=r"request too large|larger than the per-minute|\blimit \d+, requested \d+\. the input or output tokens must be reduced"),
    _code(_QUOTA, "zero_limit", _RATE_CODES, words="limit", pattern=r"limit(?:\W{1,3}|\s+is\s+)0\b|limit=0\b"),
    _code(_QUOTA, "long_window", _RATE_CODES, words="day|daily|week|month|tpd|rpd", pattern=_WINDOW_OVER_A_DAY),
    _code(_QUOTA, "no_money", _RATE_CODES, words="credit|balance|spend|funds",
          pattern=r"(?:credits?|balance)[^.\n]{0,30}(?:exhausted|depleted|used up)|(?:exhausted|depleted|used up)[^.\n]{0,30}(?:credits?|balance)"
                  r"|insufficient[_ ](?:credit|funds|balance)|out of credits|spend(?:ing)? (?:limit|cap)"),
    _code(_QUOTA, "code",
          "insufficient_quota billing_hard_limit_reached billing_not_active credit_balance_exhausted insufficient_credits "
          "organization_spend_limit_exceeded project_spend_limit_exceeded organization_usage_limit_exceeded credit_limit "
          "insufficient_funds_credits insufficient_funds insufficient_balance credit_limit_exceeded billing_error payment_required "
          "enforced_spend_limit_reached spend_limit_reached servicequotaexceededexception storage_quota_exceeded "
          "gousagelimiterror quota_exhausted arrearage budget_limit_exceeded usage_limit_reached quota_exceeded "
          "linkupinsufficientcrediterror linkupbudgetlimitexceedederror linkuppaymentrequirederror exhausted_balance "
          "enforcedspendlimitreachederror storagequotaexceedederror insufficient_user_quota exceed_budget_limit billing_disabled"),
    _code(_RATE, "code", _RATE_CODES + " requests 1300 ramp_limit_exceeded concurrency_limit_exceeded "
          "linkuptasksqueuelimitexceedederror tasks_queue_limit_exceeded rampl_imit_exceeded"),
    _code(_OVER, "code",
          "overloaded_error overloaded engine_overloaded server_overloaded service_tier_capacity_exceeded 3505 "
          "modelnotreadyexception slow_down model_overloaded capacity_exceeded overloadederror model_loading"),
    _code(_MODEL, "code",
          "model_not_found modelnotfound deploymentnotfound unknown_model invalid_model model_not_available model_deprecated "
          "modelnotfoundexception model_decommissioned model_not_supported model_retired invalid_model_id modelnotfounderror reponotfound revisionnotfound"),
    _code(_AUTH, "code",
          "invalid_api_key authentication_error invalid_key wrong_api_key unauthorized unauthenticated api_key_invalid "
          "credentials_missing access_token_type_unsupported access_token_expired expiredtokenexception expiredtoken "
          "unrecognizedclientexception invalidsignatureexception incompletesignatureexception missingauthenticationtokenexception "
          "invalidclienttokenid signaturedoesnotmatch invalid_authentication invalid_token no_auth token_expired "
          "authenticationerror unauthorizederror invalidtokenerror linkupauthenticationerror missingcredentialserror "
          "nocredentialserror partialcredentialserror credentialretrievalerror defaultcredentialserror refresherror "
          "tokenretrievalerror unauthorizedssotokenerror credentialserror subjecttokenprovidererror oautherror clientauthenticationerror"),
    _code(_PERM, "code",
          "permission_denied permission_error accessdeniedexception access_denied service_disabled iam_permission_denied "
          "model_terms_required insufficient_permissions forbidden unsupported_country_region_territory organization_on_hold "
          "account_deactivated model_not_allowed_error ip_not_allowed permissiondeniederror forbiddenerror gatedrepoerror "
          "disabledrepoerror organizationonholderror linkupipnotallowederror linkupforbiddenerror "
          "permissiondenied ip_not_whitelisted linkupipnotwhitelistederror",
          unless=r"exhausted balance|not allowed to request"),
    _code(_LONG, "code",
          "context_length_exceeded too_many_prompt_tokens request_too_large string_above_max_length 3051 model_context_window_exceeded "
          "contextwindowexceedederror contenttoolargeerror max_tokens_exceeded linkupfetchresponsetoolargeerror model_length"),
    _code(_REFUSED, "code",
          "content_filter content_policy_violation moderation_blocked responsibleaipolicyviolation contentpolicyviolation "
          "public_error_unsafe_generation safety prohibited_content image_safety recitation blocklist spii refusal guardrail_intervened "
          "content_filtered contentpolicyviolationerror contentfilterfinishreasonerror unsafe_content sensitive_content "
          "image_prohibited_content image_recitation"),
    _code(_THROWN, "code", "tool_use_failed failed_generation model_error json_validate_failed modelerrorexception "
          "modelstreamerrorexception malformed_function_call generationerror"),
    _code(_UNSURE, "code",
          "timeout_error deadline_exceeded modeltimeoutexception gateway_timeout requesttimeout request_timeout "
          "linkuptimeouterror linkuprequestdeadlineexceedederror inferencetimeouterror falclienttimeouterror apitimeouterror timeout "
          "apiconnectionerror websocketconnectionclosederror"),
    _code("provider.output_truncated", "code", "lengthfinishreasonerror"),
    _code("provider.output_invalid", "code", "apiresponsevalidationerror responsevalidationerror"),
    # Another call was in the way; Amazon says so with a 400.
    _code(_DOWN, "conflict", "conflictexception"),
    _code(_CAPABILITY, "code", "unsupported_parameter model_capability_missing notimplementederror",
          unless=r"organi[sz]ation must be verified"),
    _code(_REJECTED, "code", "noregionerror endpointprovidererror unknownserviceerror invalidregionerror unknownendpointerror"),
    _code(_BAD, "code", "entrynotfound"),
    *(Rule(f"{kind.partition('.')[2]}.service_code", kind, "code", codes=codes) for kind, codes in vendor_codes.rows().items()),
)  # fmt: skip

CLASSES: tuple[Rule, ...] = (_code("cancel.run", "code", "apiuseraborterror clientclosedrequesterror"),)
"""Rows for names of client classes alone. A provider that sends such a name as a code cancels nothing here."""

DECISIVE: tuple[Rule, ...] = (
    _status(_QUOTA, 402),
    _status(_OVER, 529),
    _status(_UNSURE, 408, 499, 504, 524),
    _status("provider.connection", 521, 522, 523),
)

WORDS: tuple[Rule, ...] = (
    _words(_LONG, "larger_than_window", "too large|larger than",
          r"request too large for .{1,200}tokens per min|tokens\) is larger than"),
    _words("resource.system_memory", "words", "system memory|allocate memory", r"(?:requires? more|needs) .{0,20}system memory|can(?:'t|not) allocate memory"),
    _words("resource.gpu_memory", "words", "out of memory|outofmemory|failed to allocate|alloc_failed|cudamalloc",
          r"cuda out of memory|cuda error: out of memory|mps backend out of memory|hip out of memory"
          r"|resource_exhausted: out of memory while trying to allocate|cublas_status_alloc_failed|cudamalloc failed"),
    _words(_QUOTA, "words", "quota|credit|balance|billing|afford|spend|usage limit|payment|prepaid|limit exceeded",
          r"credit balance|exceeded your current quota|insufficient[_ ](?:quota|credit|funds|balance)|out of credits|no credits"
          r"|(?:any|enough|more|no remaining) credits|credits? (?:exhausted|depleted)|depleted your|exhausted balance|requires more credits|not enough credits|only afford"
          r"|billing (?:limit|quota|issue|exceeded|hard limit|reasons)|monthly (?:spend|spending|usage|included)"
          r"|(?:daily|weekly|monthly) usage limit|usage limits? reached|reached your (?:specified )?(?:api )?usage limits?|spend(?:ing)? limit|payment required|account (?:is )?inactive"
          r"|quota (?:has been )?(?:exhausted|used up)",
          unless=r"invalid api key|per[- ]minute|rate cut to|balance is under|retry in \d"),
    _words(_QUOTA, "long_window", "day|daily|week|month|tpd|rpd",
          rf"(?:limit|quota|allowance|tokens|requests)[^.\n]{{0,80}}(?:{_WINDOW_OVER_A_DAY})|(?:{_WINDOW_OVER_A_DAY})[^.\n]{{0,60}}(?:limit|quota|allowance|reached|used up|exceeded)",
          unless=r"per[-_ ]?minute \("),
    _words(_RATE, "words", "rate limit|ratelimit|too many requests|requests per|tokens per|throttl|rate exceeded|call rate",
          r"rate[- ]?limit|too many requests|(?:requests|tokens|queries)[- ]per[- ](?:min|sec|hour)|throttl(?:ed|ing)|rate exceeded"
          r"|exceeded (?:token|call) rate",
          unless=r"does not support|not supported"),
    _words(_AUTH, "words", "api key|api_key|apikey|token|credential|authenticat|signature|secret key|unauthorized|api token",
          r"(?:invalid|incorrect|wrong|missing|bad or missing|no|expired|not a valid|did not pass a valid|provide a valid|not provided|malformed)"
          r"[^.\n]{0,40}(?:api[-_ ]?(?:key|token)|x-api-key|auth(?:entication|orization)? (?:header|token|credential)|access token|credentials|subscription key|security token)"
          r"|(?:api[-_ ]?key|credentials?|security token|access token|auth(?:entication)? token)[^.\n]{0,60}(?:invalid|not valid|incorrect|expired|missing|not (?:provided|found|set|supported)|was not provided|required|be set)"
          r"|could not resolve authentication|unable to locate credentials|not authenticated|default credentials were not found",
          unless=r"token limit|max_tokens|unexpected token"),
    _words(_PERM, "words", "verified|not authori|not allowed|permission|terms|blocked|locked|disabled|suspended|banned|restricted|not been used|country|region|location|have access",
          r"(?:organi[sz]ation|account) must be verified|not authori[sz]ed (?:for|to)|(?:account|organi[sz]ation|project|workspace|team|user|api key) (?:has been |is |was )?(?:not allowed|locked|suspended|disabled|deactivated|banned|blocked|restricted)|location is not supported|(?:country|region|territory)[^.\n]{0,40} not supported|do(?:es)?(?: not|n't) have (?:access|permission)"
          r"|requires? terms acceptance|has not been used in project|insufficient permissions|cloudflare (?:block|security) page"
          r"|(?:you have|been) blocked|not available in your (?:country|region)|permission '[^']{1,100}' denied|security page",
          unless=r"not allowed to request|exhausted balance|safety|does not exist|not found|prompt|content"),
    _words(_LONG, "words", "context|too long|too large|tokens|length|text bytes|payload|maximum token|token count",
          r"context (?:length|window|size)[^.\n]{0,40}(?:exceed|is|of)|exceeds? (?:the |its )?(?:context|maximum (?:context|length|number of tokens|token))"
          r"|maximum context length|prompt (?:is )?too long|too many total text bytes|input is too long|input tokens exceed"
          r"|tokens?[^.\n]{0,40}too large for model|number of input tokens exceeds|reduce the length of the (?:messages|prompt|input)"
          r"|request (?:body|entity) too large|payload size exceeds|maximum prompt length|too many tokens|number of tokens[^.\n]{0,60}exceeds|must have less than \d+ tokens|max_new_tokens.{0,3} must be|length limit exceeded|exceeded max context|input (?:length|token count) .{0,60}exceed",
          unless=r"max_tokens (?:is|or)|output limit was reached"),
    _words(_REFUSED, "words", "safety|policy|policies|filtered|moderation|prohibited|sensitive|usage guidelines|blocked|harmful|unsafe|content management|flagged|nsfw",
          r"content[_ ](?:policy|filter|management policy|moderation)|safety (?:system|filter|violation|reasons|settings)|blocked (?:by|due to|for) (?:safety|content)"
          r"|usage (?:guidelines|polic(?:y|ies))|(?:input|prompt|content|request) was flagged|flagged (?:as|by|for) |prohibited use|sensitive words|filtered out because|refused (?:by|the image)|nsfw content|violat(?:es|ed|ing) .{0,60}(?:polic|guidelines)",
          unless=r"cloudflare"),
    _words(_CAPABILITY, "words", "support|n't su|not su|not enabled|not permitted|not allowed to request|missing data required|not available for this model",
          r"(?:does|do|is|are|did)(?: not|n't|n’t|nt) (?:currently )?(?:be )?(?:su+p+ort|enabled)|not su+p+ort(?:ed)?|doesn't su+p+ort|unsupported (?:parameter|value|tool_choice|feature)"
          r"|is not enabled for|function calling not support|only supported|not allowed to request|missing data required for image"
          r"|no endpoints found that support|not su+p+orted (?:by|with|for|in)",
          unless=r"unsupported image|unsupported (?:file|format|media)|support (?:must be|team)|contact support|not supported for generatecontent"
                 r"|not supported by this api|support fine-tuning|on-demand throughput|models?/[^ ]+ is not found|not found for api version"),
    _words(_MODEL, "words", "model|deployment|endpoints found|supported values|version",
          r"model[^.\n]{0,80}(?:not found|does(?: not|n't) exist|not exist|was removed|removed from|deprecated|decommissioned|retired|invalid|not a valid|is not found|manifest)"
          r"|(?:unknown|invalid|nonexistent|no such|unexpected) model|model not (?:found|exist)|not a valid model|deployment[^.\n]{0,60}does not exist"
          r"|invalid model (?:id|name|identifier)|model(?: identifier| id| name)?[^.\n]{0,20} is invalid|no endpoints found for|supported api model names"
          r"|unable to access non-serverless model|pull model manifest|supported values are: '(?:gpt|dall-e|claude|gemini|o\d)|^models?: \S+$|unexpected model name|on-demand throughput isn|not servable|(?:invalid|specified|model) version(?: or|[^.\n]{0,20}does not exist)",
          unless=r"base model|is not supported with|tool|parameter|access to model .{0,40}denied"),
    _words(_OVER, "words", "overloaded|capacity|currently loading|try later|high demand|temporarily",
          r"overloaded|at capacity|out of capacity|capacity exceeded|currently loading|model is loading|high demand|temporarily (?:unavailable|out of)"),
    _words(_THROWN, "words", "failed to|no valid response|tool call|produced invalid|invalid json",
          r"failed to (?:generate|call) (?:a )?(?:tool_calls|function)|no valid response generated|tool call validation failed"
          r"|model (?:generated too many tool calls|produced invalid content)|did not call a tool|^invalid json: "),
    _words("provider.connection", "words", "connect",
          r"could not connect to|connection refused|failed to establish a new connection|connections to all backends failing|cannot connect to host"),
    _words(_REJECTED, "words", "route|url|endpoint", r"no route for|invalid url|unknown (?:endpoint|url|route)|unrecognized request url"),
    _words("internal.bug", "words", "object", r"object has no attribute|object is not (?:subscriptable|callable|iterable)"),
    _words(_BAD, "words", "max_tokens|output limit|<400>|400 bad request|invalidparameter|unknown format|raise_exception|conversation roles|alternate",
          r"max_tokens|output limit was reached|<400>|^400 bad request|internalerror\.algo\.invalidparameter|image: unknown format|raise_exception|roles must alternate"),
)  # fmt: skip

LADDER: tuple[Rule, ...] = (
    _status(_AUTH, 401),
    _status(_PERM, 403),
    _status(_RATE, 429),
    _status(_LONG, 413),
    _status(_DOWN, 409, 425),
    _status(_BAD, 400, 422, 424),
    _status(_OVER, 503),
    _status(
        _REJECTED,
        *(code for code in range(402, 500) if code not in (403, 404, 408, 409, 413, 422, 424, 425, 429)),
    ),
    _status(_DOWN, *(code for code in range(500, 600) if code not in (503, 504, 521, 522, 523, 524, 529))),
)

IMPLIED_STATUS: dict[str, int] = {
    **vendor_codes.STATUSES,
    "badrequesterror": 400, "invalidrequesterror": 400, "unprocessableentityerror": 422, "authenticationerror": 401,
    "unauthorizederror": 401, "permissiondeniederror": 403, "forbiddenerror": 403, "notfounderror": 404,
    "conflicterror": 409, "ratelimiterror": 429, "toomanyrequestserror": 429, "internalservererror": 500,
    "serviceunavailableerror": 503, "badgatewayerror": 502, "gatewaytimeouterror": 504, "overloadederror": 529,
    "requesttimeouterror": 408, "contenttoolargeerror": 413, "validationexception": 400, "throttlingexception": 429,
    "accessdeniedexception": 403, "resourcenotfoundexception": 404, "internalserverexception": 500,
    "serviceunavailableexception": 503, "modeltimeoutexception": 408, "modelnotreadyexception": 429,
    "conflictexception": 409, "repositorynotfounderror": 404, "revisionnotfounderror": 404,
    "linkupinvalidrequesterror": 400, "linkupnoresulterror": 422, "linkupunknownerror": 500,
    "invalidargument": 400, "unauthenticated": 401, "permissiondenied": 403, "notfound": 404, "alreadyexists": 409,
    "aborted": 409, "resourceexhausted": 429, "toomanyrequests": 429, "unavailable": 503, "serviceunavailable": 503,
    "internal": 500, "unknown": 500, "dataloss": 500, "deadlineexceeded": 504, "unimplemented": 501,
    "failedprecondition": 400, "outofrange": 400, "validationerror": 400, "overloaded": 503,
    "servererror": 500, "server_error": 500, "internal_server_error": 500, "internal_error": 500, "api_error": 500,
    "service_unavailable": 503, "invalid_argument": 400, "invalid_request_error": 400, "not_found": 404,
    "not_found_error": 404, "internalerror": 500, "workloadidentityerror": 401, "permission_denied": 403,
}  # fmt: skip
"""The status that a class or a status word implies, if there is no reply."""

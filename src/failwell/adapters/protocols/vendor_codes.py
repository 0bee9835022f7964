"""Machine codes of services, by vendor: what a service documents that its code means.

A code in `CODES` means the same wherever it occurs. A code that means something else at another vendor, as
bare numbers do, is in `CODES_OF` under the provider that sends it. Codes are written in lower case. A code that
the rules know already, such as `rate_limit_exceeded`, has no row here.
"""

from failwell.adapters.protocols.stores import ELASTICSEARCH_TYPES
from failwell.errors.lazy_regex import lazy_regex

_QUOTA, _RATE, _OVER = "provider.quota_exhausted", "provider.rate_limited", "provider.overloaded"
_DOWN, _AUTH, _PERMISSION = "provider.unavailable", "provider.auth", "provider.permission"
_MODEL, _CAPABILITY, _BAD = "provider.model_not_found", "provider.capability_missing", "provider.bad_request"
_LONG, _REFUSED, _UNSURE = "provider.context_too_long", "provider.content_refused", "provider.outcome_unknown"
_REJECTED, _BUSY, _CONNECTION = "provider.rejected", "tool.busy", "provider.connection"
_INVALID = "provider.output_invalid"

_ALL: tuple[tuple[str, str], ...] = (
    # IETF, "RateLimit header fields for HTTP", problem types: https://iana.org/assignments/http-problem-types
    (_RATE, "quota-exceeded"),
    (_OVER, "temporary-reduced-capacity"),
    (_PERMISSION, "abnormal-usage-detected"),
    # OpenRouter, "Errors and debugging" and `APIErrorType`: https://openrouter.ai/docs/api/errors
    (_AUTH, "authentication"),
    (_OVER, "provider_overloaded"),
    (_DOWN, "provider_unavailable"),
    (_BAD, "invalid_image image_too_small unsupported_image_format image_not_found image_download_failed"),
    (_LONG, "string_too_long payload_too_large image_too_large"),
    # The paid requests that run fill the budget for the moment. The reply says how long to wait.
    (_RATE, "in_flight_budget_exhausted openrouter_in_flight_budget"),
    (_QUOTA, "weight_exceeds_budget openrouter_credits openrouter_guardrail_budget openrouter_workspace_budget"),
    (_QUOTA, "openrouter_key_limit token_limit_exceeded"),
    # LiteLLM's proxy, "Error reference": https://docs.litellm.ai/docs/proxy/error_reference
    (_QUOTA, "budget_exceeded"),
    (_RATE, "throttling_error"),
    (_AUTH, "expired_key auth_error token_not_found_in_db"),
    (_PERMISSION, "key_model_access_denied team_model_access_denied user_model_access_denied"),
    (_PERMISSION, "org_model_access_denied project_model_access_denied key_vector_store_access_denied"),
    (_PERMISSION, "team_vector_store_access_denied org_vector_store_access_denied team_member_permission_error"),
    (_DOWN, "no_db_connection"),
    # ElevenLabs, "Errors": https://elevenlabs.io/docs/developers/resources/errors
    (_RATE, "too_many_concurrent_requests"),
    (_OVER, "system_busy"),
    (_AUTH, "missing_api_key needs_authorization"),
    (_PERMISSION, "missing_permissions detected_unusual_activity"),
    (_LONG, "max_character_limit_exceeded"),
    (_BAD, "voice_not_found"),
    # PostgREST, "Errors": https://docs.postgrest.org/en/stable/references/errors.html
    (_DOWN, "pgrst000 pgrst001 pgrst002 pgrst003"),
    (_BAD, "pgrst100 pgrst101 pgrst102 pgrst103 pgrst105 pgrst108 pgrst111 pgrst112 pgrst114 pgrst115 pgrst116 pgrst118 pgrst120 pgrst121 pgrst122"),
    (_REJECTED, "pgrst106 pgrst107 pgrst117 pgrst125 pgrst126 pgrst127 pgrst200 pgrst201 pgrst202 pgrst203 pgrst204 pgrst205"),
    (_AUTH, "pgrst300 pgrst301 pgrst302 pgrst303"),
    # Slack, "Errors" of the Web API: https://docs.slack.dev/reference/methods/chat.postMessage#errors
    (_PERMISSION, "missing_scope not_in_channel user_not_in_channel restricted_action ekm_access_denied"),
    (_AUTH, "not_authed account_inactive token_revoked not_allowed_token_type"),
    (_LONG, "msg_too_long"),
    # Cartesia, "API errors": https://docs.cartesia.ai/use-the-api/api-errors
    (_RATE, "concurrency_limited"),
    # Deepgram, "Errors": https://developers.deepgram.com/docs/errors
    (_AUTH, "invalid_auth"),
    (_QUOTA, "asr_payment_required"),
    (_BAD, "invalid_json"),
    # Exa, "Error codes": https://exa.ai/docs/reference/error-codes
    (_QUOTA, "no_more_credits api_key_budget_exceeded"),
    (_BAD, "invalid_urls invalid_num_results invalid_json_schema num_results_exceeded no_content_found"),
    # Firecrawl, "Error codes": https://docs.firecrawl.dev/api-reference/introduction
    (_DOWN, "scrape_all_engines_failed scrape_pdf_prefetch_failed scrape_site_error scrape_action_error"),
    (_CONNECTION, "scrape_dns_resolution_error"),
    (_UNSURE, "scrape_timeout"),
    (_BAD, "scrape_ssl_error"),
    # Alibaba Cloud Model Studio, "Error messages": https://www.alibabacloud.com/help/en/model-studio/error-code
    (_AUTH, "invalidapikey"),
    (_PERMISSION, "accessdenied accessdenied.unpurchased workspace.accessdenied model.accessdenied"),
    (_QUOTA, "prepaidbilloverdue postpaidbilloverdue commoditynotpurchased allocationquota.freetieronly"),
    (_RATE, "throttling.allocationquota limit_requests"),
    (_REFUSED, "datainspectionfailed data_inspection_failed ipinfringementsuspect faqrulesblocked"),
    (_BAD, "badrequest.emptyinput badrequest.emptyparameters badrequest.emptymodel unsupportedoperation"),
    (_BAD, "badrequest.inputdownloadfailed badrequest.unsupportedfileformat invalidparameter.datainspection"),
    (_LONG, "badrequest.toolarge"),
    (_REJECTED, "invalidurl flownotpublished"),
    # Amazon S3, "Error responses": https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
    (_RATE, "slowdown requestthrottled requestthrottledexception throttledexception"),
    (_PERMISSION, "accountproblem allaccessdisabled invalidobjectstate notsignedup"),
    (_AUTH, "invalidaccesskeyid requesttimetooskewed tokenrefreshrequired invalidtoken invalidsecurity authfailure"),
    (_AUTH, "missingauthenticationtoken incompletesignature requestexpired signaturedoesnotmatch expiredtoken"),
    # AWS, "Common errors" of every API
    (_AUTH, "unrecognizedclientexception invalidsignatureexception incompletesignatureexception expiredtokenexception"),
    (_AUTH, "missingauthenticationtokenexception invalidclienttokenid"),
    (_PERMISSION, "accessdeniedexception notauthorized unauthorizedoperation"),
    (_REJECTED, "nosuchbucket permanentredirect authorizationheadermalformed illegallocationconstraintexception"),
    (_BAD, "nosuchkey nosuchupload nosuchversion bucketalreadyexists bucketalreadyownedbyyou bucketnotempty"),
    (_BAD, "baddigest entitytoosmall invaliddigest invalidpart invalidpartorder invalidrange keytoolongerror"),
    (_BAD, "malformedxml preconditionfailed invalidbucketname missingcontentlength"),
    (_LONG, "entitytoolarge maxmessagelengthexceeded metadatatoolarge"),
    (_QUOTA, "toomanybuckets"),
    (_BUSY, "operationaborted conditionalrequestconflict"),
    # Amazon DynamoDB, "Error handling": https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
    (_BAD, "conditionalcheckfailedexception itemcollectionsizelimitexceededexception duplicateitemexception"),
    (_BAD, "idempotentparametermismatchexception"),
    (_REJECTED, "tablenotfoundexception indexnotfoundexception"),
    (_BUSY, "transactionconflictexception transactioninprogressexception resourceinuseexception"),
    (_BUSY, "transactioncanceledexception replicatedwriteconflictexception"),
    # Amazon SQS, STS, KMS and Lambda, the pages about errors in their API references: https://docs.aws.amazon.com
    (_REJECTED, "aws.simplequeueservice.nonexistentqueue queuedoesnotexist invalidaction"),
    (_RATE, "overlimit kmsthrottlingexception kms.throttlingexception bandwidthlimitexceeded"),
    (_RATE, "ec2throttledexception"),
    (_BUSY, "purgequeueinprogress aws.simplequeueservice.purgequeueinprogress queuedeletedrecently"),
    (_BAD, "invalidmessagecontents receipthandleisinvalid messagenotinflight emptybatchrequest"),
    (_BAD, "toomanyentriesinbatchrequest batchentryidsnotdistinct invalidparametercombination malformedquerystring"),
    (_LONG, "batchrequesttoolong requesttoolargeexception"),
    (_AUTH, "invalididentitytoken optinrequired"),
    (_PERMISSION, "kmsaccessdeniedexception"),
    (_REJECTED, "kmsdisabledexception kmsnotfoundexception kmsinvalidstateexception"),
    # Amazon EC2, Route 53 and the services with versions of a resource, "Error codes": https://docs.aws.amazon.com
    (_QUOTA, "maxspotinstancecountexceeded codestorageexceededexception"),
    (_BUSY, "priorrequestnotcomplete concurrentmodificationexception"),
    (_BAD, "malformedpolicydocument"),
    # llama.cpp, `format_error_response` of its server: https://github.com/ggml-org/llama.cpp
    (_LONG, "exceed_context_size_error"),
    (_OVER, "unavailable_error"),
    (_CAPABILITY, "not_supported_error"),
    # Pinecone, "Errors": https://docs.pinecone.io/reference/api/errors
    (_BAD, "already_exists"),
    # A2A, section "Error handling", `ErrorInfo.reason` in the domain a2a-protocol.org: https://a2a-protocol.org
    (_BAD, "task_not_found task_not_cancelable content_type_not_supported"),
    (_CAPABILITY, "push_notification_not_supported unsupported_operation extension_support_required"),
    (_REJECTED, "version_not_supported extended_agent_card_not_configured"),
    (_INVALID, "invalid_agent_response"),
    # google.rpc.ErrorReason in the domain googleapis.com: https://cloud.google.com/apis/design/errors
    (_AUTH, "access_token_scope_insufficient account_state_invalid"),
    (_PERMISSION, "api_key_service_blocked api_key_http_referrer_blocked api_key_ip_address_blocked"),
    (_PERMISSION, "api_key_android_app_blocked api_key_ios_app_blocked consumer_suspended user_project_denied"),
    (_PERMISSION, "security_policy_violated location_tax_policy_violated org_restriction_violation"),
    (_REJECTED, "consumer_invalid"),
    (_PERMISSION, "service_disabled"),
    # Google, the reasons of its JSON APIs: https://cloud.google.com/bigquery/docs/error-messages
    (_PERMISSION, "accessnotconfigured accountdisabled"),
    (_QUOTA, "billingnotenabled"),
    (_DOWN, "backenderror jobbackenderror jobinternalerror tableunavailable"),
    (_LONG, "responsetoolarge"),
    # Google Compute Engine, "Troubleshooting resource availability": https://cloud.google.com/compute/docs/troubleshooting
    (_OVER, "zone_resource_pool_exhausted zone_resource_pool_exhausted_with_details"),
    (_BUSY, "resource_not_ready resourcenotready"),
    # Azure Resource Manager, "Common deployment errors": https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting
    (_QUOTA, "subscriptionisoverquotaforsku"),
    (_OVER, "allocationfailed zonalallocationfailed overconstrainedallocationrequest"),
    (_PERMISSION, "requestdisallowedbypolicy regionclosedforsubscription"),
    (_REJECTED, "missingsubscriptionregistration noregisteredproviderfound skunotavailable"),
    (_BUSY, "anotheroperationinprogress"),
    (_DOWN, "retryableerror"),
    # Azure Storage, "Common REST API error codes" and those of blobs, files, queues and tables: https://learn.microsoft.com/rest/api/storageservices
    (_BUSY, "containerbeingdeleted sharebeingdeleted queuebeingdeleted tablebeingdeleted blobbeingrehydrated"),
    (_BUSY, "containerbeingdisabled pendingcopyoperation"),
    # Heroku, "Error codes" of its router, its runtime and its logs: https://devcenter.heroku.com/articles/error-codes
    (_DOWN, "h10 h13 h14 h15 h16 h18 h20 h22 h23 h25 h26 h80 h99 r10 r12 l10 l15"),
    (_CONNECTION, "h19 h21"),
    (_UNSURE, "h12 h27 h28"),
    (_OVER, "h11"),
    (_REJECTED, "h17 h24 h31 h81 h82 h83 r16 r17"),
    ("resource.system_memory", "r14 r15"),
    # Windows, [MS-ERREF] section 2.3.1, as clients of SMB print it: https://learn.microsoft.com/openspecs/windows_protocols/ms-erref
    (_AUTH, "nt_status_logon_failure nt_status_wrong_password nt_status_password_expired nt_status_account_disabled nt_status_no_such_user"),
    (_PERMISSION, "nt_status_access_denied nt_status_account_restriction nt_status_network_access_denied"),
    (_REJECTED, "nt_status_bad_network_name nt_status_object_path_not_found nt_status_no_such_domain"),
    (_BAD, "nt_status_object_name_not_found nt_status_no_such_file nt_status_object_name_collision nt_status_invalid_parameter"),
    (_CONNECTION, "nt_status_connection_refused nt_status_host_unreachable nt_status_network_unreachable nt_status_bad_network_path"),
    (_UNSURE, "nt_status_io_timeout nt_status_connection_reset nt_status_connection_disconnected"),
    (_BUSY, "nt_status_sharing_violation nt_status_file_lock_conflict"),
    ("resource.disk", "nt_status_disk_full"),
    # New API, a gateway, `ErrorCode` in its source: https://github.com/QuantumNous/new-api
    (_REFUSED, "sensitive_words_detected violation_fee.grok.csam"),
    (_QUOTA, "pre_consume_token_quota_failed"),
)  # fmt: skip

STATUSES: dict[str, int] = {
    "invalid_request": 400, "invalid_prompt": 400, "bad_request_error": 400, "validation_error": 400,
    "invalidparameter": 400, "invalid_parameter_error": 400, "invalid_request_body": 400, "invalidparametervalue": 400,
    "missingparameter": 400, "invalidqueryparameter": 400, "validationerror": 400, "invalidargument": 400,
    "precondition_failed": 412, "unprocessable": 422, "failed_precondition": 400, "out_of_range": 400,
    "internalfailure": 500, "internalservererror": 500, "serviceexception": 500, "internalservererrorexception": 500,
    "internalerror.algo": 500, "internalerror.timeout": 500, "server": 500, "serviceunavailable": 503,
    # JSON-RPC 2.0, section 5.1: https://www.jsonrpc.org/specification
    "-32700": 400, "-32600": 400, "-32601": 501, "-32602": 400, "-32603": 500,
    "modelservingerror": 500, "modelunavailable": 503,
}  # fmt: skip
"""Codes that say no more than a status does. Words and other codes may say more, as they may of the status."""

_BY_PROVIDER: dict[str, tuple[tuple[str, str], ...]] = {
    # Zhipu AI and Z.AI, "Error codes": https://docs.bigmodel.cn/cn/api/api-code, https://docs.z.ai/api-reference/api-code
    "zhipu": (
        (_AUTH, "1000 1001 1002 1003 1004"),
        (_PERMISSION, "1110 1111 1112 1121 1220 1311 1313"),
        (_QUOTA, "1113 1304 1308 1309 1310"),
        (_DOWN, "1120 1200 1230 1234"),
        (_BAD, "1210 1213 1214 1215"),
        (_MODEL, "1211"),
        (_CAPABILITY, "1212"),
        (_REJECTED, "1221 1222 1300"),
        (_BUSY, "1231"),
        (_LONG, "1261"),
        (_REFUSED, "1301"),
        (_RATE, "1302 1303 1305"),
        (_OVER, "1312"),
    ),
    # Cloudflare Workers AI, "Errors": https://developers.cloudflare.com/workers-ai/platform/errors
    "cloudflare": (
        (_MODEL, "5007 3042"),
        (_BAD, "5004 3003 3039"),
        (_PERMISSION, "5018 5016 3023 3041"),
        (_CAPABILITY, "5005"),
        (_REJECTED, "5019"),
        (_LONG, "3006"),
        (_UNSURE, "3007 3008"),
        (_QUOTA, "3036"),
        (_OVER, "3040"),
        # Pages of the edge, "Cloudflare 1xxx errors": https://developers.cloudflare.com/support/troubleshooting
        (_REJECTED, "1000 1003 1004 1013 1014 1018 1023 1034 1037"),
        (_CONNECTION, "1001 1016"),
        (_PERMISSION, "1005 1006 1007 1008 1009 1010 1011 1012 1020"),
        (_RATE, "1015"),
        (_QUOTA, "1025 1027"),
        (_DOWN, "1019 1033 1101 1102 1104 1105"),
        (_OVER, "1200"),
    ),
    # A2A over JSON-RPC, section "Error handling": https://a2a-protocol.org. Other protocols give these numbers other meanings.
    "a2a": (
        (_BAD, "-32001 -32002 -32005"),
        (_CAPABILITY, "-32003 -32004 -32008"),
        (_INVALID, "-32006"),
        (_REJECTED, "-32007 -32009"),
    ),
    # MiniMax, "Error codes": https://platform.minimax.io/docs/api-reference/errorcode
    "minimax": (
        (_DOWN, "1000 1024 1033"),
        (_UNSURE, "1001"),
        (_RATE, "1002 1039 1041"),
        (_AUTH, "1004 2049"),
        (_QUOTA, "1008 2056"),
        (_REFUSED, "1026 1027"),
        (_BAD, "1042 1043 1044 2013 20132 2037 2039"),
        (_PERMISSION, "2042"),
    ),
}
_SAME: dict[str, str] = {
    "zhipuai": "zhipu", "zai": "zhipu", "z.ai": "zhipu", "bigmodel": "zhipu", "glm": "zhipu",
    "cloudflare-workers-ai": "cloudflare", "workers-ai": "cloudflare",
}  # fmt: skip
"""Other names that the same provider goes by."""

CODES: dict[str, str] = {
    **ELASTICSEARCH_TYPES,
    **{code: kind for kind, codes in _ALL for code in codes.split()},
}
"""Code → kind, for codes that mean the same everywhere."""
CODES_OF: dict[str, dict[str, str]] = {
    provider: {code: kind for kind, codes in rows for code in codes.split()}
    for provider, rows in _BY_PROVIDER.items()
}
"""Provider → code → kind, for codes that mean something else elsewhere."""


_SHORT_BODY = 64
_EDGE = lazy_regex(r"error code: (1\d{3})\s*")
_EDGE_PAGE = lazy_regex(r"Error(?:<[^<>]{0,80}>|[\s:]){1,12}(1\d{3})\b")


def edge_code(text: str) -> str | None:
    """The code of a page that Cloudflare's edge answers with instead of the service: `cloudflare:1015`.

    It is the whole body, `error code: 1015`, or it stands in a page that names Cloudflare.
    """
    match = _EDGE.fullmatch(text.strip()) if len(text) < _SHORT_BODY else None
    if match is None:
        match = _EDGE_PAGE.search(text[:4_000])
        if match is None or "cloudflare" not in text[:20_000].lower():
            return None
    code = match.group(1)
    return f"cloudflare:{code}" if code in CODES_OF["cloudflare"] else None


def scoped(provider: str | None, codes: tuple[str, ...]) -> tuple[str, ...]:
    """`codes`, with those that have a meaning only at this provider written as `provider:code`."""
    if provider is None or not codes:
        return codes
    name = provider.lower()
    name = _SAME.get(name, name)
    own = CODES_OF.get(name)
    return codes if own is None else tuple([f"{name}:{code}" if code in own else code for code in codes])


def rows() -> dict[str, frozenset[str]]:
    """Kind → every code that stands for it, those of one provider written as `provider:code`."""
    by_kind: dict[str, set[str]] = {}
    for code, kind in CODES.items():
        by_kind.setdefault(kind, set()).add(code)
    for provider, own in CODES_OF.items():
        for code, kind in own.items():
            by_kind.setdefault(kind, set()).add(f"{provider}:{code}")
    return {kind: frozenset(codes) for kind, codes in by_kind.items()}

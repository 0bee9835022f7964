"""boto3 and botocore: services answer with a code, and everything before that is a `BotoCoreError`.

A service's exception classes are made when its client is, so they cannot be listed: the code in
`response["Error"]` is what they are named after. Errors inside an event stream carry a status that
was not sent.
"""

from typing import Any

from failwell.adapters.classification import Classification
from failwell.adapters.facts import Facts, as_objects, codes_and_message
from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import SdkAdapter, adapter, id_in, names_of, transport
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import safe_getattr, str_attr
from failwell.errors.headers import lower_headers
from failwell.errors.safe_str import as_dict

_BEDROCK = frozenset(
    {
        "Converse", "ConverseStream", "InvokeModel", "InvokeModelWithResponseStream", "StartAsyncInvoke",
        "InvokeModelWithBidirectionalStream", "ApplyGuardrail", "CountTokens", "InvokeAgent", "RetrieveAndGenerate",
    }
)  # fmt: skip


def _answered(error: BaseException) -> Facts:
    response = _mapping(safe_getattr(error, "response"))
    around = _mapping(response.get("ResponseMetadata"))
    body = as_objects({name: value for name, value in response.items() if name != "ResponseMetadata"})
    headers = lower_headers(around.get("HTTPHeaders"))
    status, request_id = around.get("HTTPStatusCode"), around.get("RequestId")
    names = names_of(error)
    in_stream = "eventstreamerror" in names
    codes, message = codes_and_message(body)
    phase, bug = transport(error)
    # As a call of the class it would take twice as long.
    facts = object.__new__(Facts)
    Facts.__init__(
        facts,
        provider="bedrock" if str_attr(error, "operation_name") in _BEDROCK else "aws",
        sdk="botocore",
        exception_type=type(error).__name__,
        names=names,
        status=status if isinstance(status, int) and not in_stream else None,
        codes=tuple(codes),
        message=message,
        headers=headers,
        body=body,
        phase=phase,
        in_stream=in_stream,
        request_id=request_id[:200] if isinstance(request_id, str) else id_in(headers),
        cause_bug=bug,
    )
    return facts


def _mapping(value: object) -> dict[str, Any]:
    return as_dict(value) or {}


def _local(kind: str, *names: str) -> Table:
    """Errors that botocore finds before it sends anything."""
    return {
        name: Classification.from_rule(
            kind=kind, rule=f"botocore.{name}", saw=name, provider="aws", certainty=Certainty.NOT_SENT
        )
        for name in names
    }


TABLES: dict[str, Table] = {
    "botocore": {
        "ClientError": SdkAdapter(_answered),
        "BotoCoreError": adapter("aws", "botocore"),
        **_local(
            "provider.auth",
            "NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "NoAuthTokenError",
            "TokenRetrievalError", "UnknownCredentialError", "UnknownTokenProviderError", "SSOError", "LoginError",
            "MetadataRetrievalError", "RefreshWithMFAUnsupportedError",
        ),
        **_local(
            "validation.config_invalid",
            "NoRegionError", "BaseEndpointResolverError", "EndpointProviderError", "UnknownRegionError",
            "InvalidRegionError", "ServiceNotInRegionError", "DataNotFoundError", "ApiVersionNotFoundError",
            "ProfileNotFound", "ConfigParseError", "ConfigNotFound", "InvalidConfigError", "InvalidDefaultsMode",
            "InvalidRetryConfigurationError", "InvalidProxiesConfigError", "InvalidEndpointConfigurationError",
            "InvalidEndpointDiscoveryConfigurationError", "InvalidIMDSEndpointError", "InvalidIMDSEndpointModeError",
            "InvalidChecksumConfigError", "InvalidSTSRegionalEndpointsConfigError", "WaiterConfigError",
            "InvalidS3UsEast1RegionalEndpointConfigError", "UnknownSignatureVersionError",
            "UnsupportedSignatureVersionError", "UnsupportedServiceProtocolsError",
        ),
        **_local(
            "validation.input_invalid",
            "ParamValidationError", "ValidationError", "MissingParametersError", "UnknownClientMethodError",
            "OperationNotPageableError", "InvalidExpressionError", "InvalidHostLabelError", "InvalidDNSNameError",
            "UnsupportedS3ArnError", "UnsupportedS3ControlArnError", "UnsupportedOutpostResourceError",
            "UnsupportedS3ConfigurationError", "UnseekableStreamError",
        ),
        **_local("internal.bug", "UndefinedModelAttributeError"),
        **_local("extension.dependency_missing", "MissingDependencyException", "MD5UnavailableError"),
        **{
            name: Classification.from_rule(kind="provider.output_invalid", rule=f"botocore.{name}", saw=name, provider="aws")
            for name in ("ResponseParserError", "EventStreamParseError", "ParserError", "ChecksumError", "FlexibleChecksumError")
        },
    },
    "boto3": {
        "Boto3Error": adapter("aws", "boto3"),
        **_local(
            "validation.input_invalid",
            "DynamoDBNeedsConditionError", "DynamoDBNeedsKeyConditionError", "DynamoDBOperationNotSupportedError",
        ),
        **_local(
            "validation.config_invalid",
            "InvalidCrtTransferConfigError", "NoVersionFound", "ResourceLoadException", "ResourceNotExistsError",
            "UnknownAPIVersionError",
        ),
    },
}  # fmt: skip

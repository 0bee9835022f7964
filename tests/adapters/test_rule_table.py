"""The rule table on replies as providers send them: one line a case, whoever the provider is."""

from typing import Any

from failwell.adapters.log_records.reading import read_saved
from tests.specimens import each

RATE, QUOTA, OVER = "provider.rate_limited", "provider.quota_exhausted", "provider.overloaded"
AUTH, PERMISSION, MODEL = "provider.auth", "provider.permission", "provider.model_not_found"
BAD, LONG, REFUSED = "provider.bad_request", "provider.context_too_long", "provider.content_refused"
CAPABILITY, DOWN, UNSURE = "provider.capability_missing", "provider.unavailable", "provider.outcome_unknown"
REJECTED, THROWN = "provider.rejected", "provider.output_rejected"


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


CASES: list[tuple[int, Any, str]] = [
    # short windows
    (429, error("Rate limit reached for gpt-x on requests per min (RPM): Limit 3, Used 3", code="rate_limit_exceeded"), RATE),
    (429, error("Requests rate limit exceeded", type="rate_limited"), RATE),
    (429, {"message": "Too many tokens, please wait before trying again.", "__type": "ThrottlingException"}, RATE),
    (429, {"message": "You are using a Trial key, which is limited to 40 API calls / minute."}, RATE),
    (429, error("Quota exceeded for metric, limit: 15", status="RESOURCE_EXHAUSTED",
                details=[{"violations": [{"quotaId": "GenerateRequestsPerMinutePerProject"}]}]), RATE),
    # long windows, money
    (429, error("Rate limit reached on requests per day (RPD): Limit 200", code="rate_limit_exceeded"), QUOTA),
    (429, error("Rate limit exceeded: free-models-per-day", code=429), QUOTA),
    (429, {"message": "You are using a Trial key, which is limited to 1000 API calls / month."}, QUOTA),
    (429, error("Quota exceeded for metric, limit: 50", status="RESOURCE_EXHAUSTED",
                details=[{"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}]), QUOTA),
    (429, {"message": "Too many tokens per day, please wait.", "__type": "ThrottlingException"}, QUOTA),
    (400, error("You have reached your specified API usage limits.", type="invalid_request_error"), QUOTA),
    (402, error("Insufficient Balance", type="unknown_error"), QUOTA),
    (403, {"error": "Your team doesn't have any credits yet."}, QUOTA),
    (403, {"detail": "User is locked. Reason: Exhausted balance."}, QUOTA),
    (429, error("This would exceed your organization's monthly spend limit", type="rate_limit_error"), QUOTA),
    # whose fault
    (400, error("User location is not supported for the API use.", status="FAILED_PRECONDITION"), PERMISSION),
    (400, error("This organization has been disabled.", type="invalid_request_error"), PERMISSION),
    (403, error("Your API key does not have permission to use the specified resource.", type="permission_error"), PERMISSION),
    (403, {"message": "You don't have access to the model with the specified model ID.", "__type": "AccessDeniedException"}, PERMISSION),
    (400, error("API key expired. Please renew the API key.", status="INVALID_ARGUMENT", details=[{"reason": "API_KEY_INVALID"}]), AUTH),
    (401, error("You must be a member of an organization to use the API"), AUTH),
    (403, {"message": "The security token included in the request is invalid.", "__type": "UnrecognizedClientException"}, AUTH),
    # models
    (404, {"detail": "Application 'nobody/nothing' not found"}, MODEL),
    (400, {"message": "Invocation of model ID x with on-demand throughput isn't supported.", "__type": "ValidationException"}, REJECTED),
    (422, {"detail": "The specified version does not exist (or perhaps you don't have permission to use it?)"}, MODEL),
    (404, {}, REJECTED),
    (404, {"error": {"code": "404", "message": "Resource not found"}}, REJECTED),
    (404, error("No such File object: file-abc"), BAD),
    # what was asked
    (400, error("Unsupported parameter: 'max_tokens' is not supported with this model.", code="unsupported_parameter"), CAPABILITY),
    (400, error("max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens"), BAD),
    (400, error("Invalid schema for function 'lookup'", code="invalid_function_parameters"), BAD),
    (400, error("Invalid prompt: your prompt was flagged as potentially violating our usage policy", code="invalid_prompt"), REFUSED),
    (400, error("Output blocked by content filtering policy", type="invalid_request_error"), REFUSED),
    (403, error("The chosen model requires moderation and your input was flagged", code=403), REFUSED),
    (400, error("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"), LONG),
    (400, error("The input token count (1200000) exceeds the maximum number of tokens allowed (1048575)."), LONG),
    (400, error("Request payload size exceeds the limit: 20971520 bytes."), LONG),
    (400, {"message": "too many tokens: total number of tokens in the prompt exceeds the limit of 4081"}, LONG),
    (422, {"error": "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000"}, LONG),
    # the provider's own trouble
    (529, error("Overloaded", type="overloaded_error"), OVER),
    (503, error("The model is overloaded. Please try again later.", status="UNAVAILABLE"), OVER),
    (498, error("Flex tier capacity exceeded"), OVER),
    (500, error("The server had an error while processing your request", type="server_error"), DOWN),
    (502, "<html><title>502 Bad Gateway</title></html>", DOWN),
    (409, error("The request conflicted with another"), DOWN),
    (424, {"message": "The model failed", "__type": "ModelErrorException"}, THROWN),
    (408, error("Request timeout"), UNSURE),
    (504, error("Deadline exceeded", status="DEADLINE_EXCEEDED"), UNSURE),
    (524, "<html>A timeout occurred</html>", UNSURE),
    (405, error("Method not allowed"), REJECTED),
    # of a page the title and the headings: the rest speaks to the visitors of a site
    (403, "<html><head><title>403 Forbidden</title></head><body><p>The model was not found, or your credits are used up.</p></html>", PERMISSION),
    (400, "\n<!DOCTYPE html><html><title>Bad Request</title><a href='/login'>Your API key is invalid?</a></html>", BAD),
    (500, "<!DOCTYPE html>\n<html><head><title>Oops</title></head><body><h1 class='x'>Rate limit exceeded</h1></body></html>", RATE),
    (403, "<?xml version='1.0'?><Error><Message> The API key is invalid </Message></Error>", AUTH),
]  # fmt: skip


@each(("status", "body", "kind"), CASES, ids=range(len(CASES)))
def test_a_reply_is_read_as_what_it_means(status: int, body: Any, kind: str) -> None:
    reading = read_saved({"http_status": status, "body": body, "transport": "http"})

    assert reading.kind == kind, reading.rule

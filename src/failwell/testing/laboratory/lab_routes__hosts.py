"""Which provider a host belongs to, so that its calls can be answered by its dialect."""

_HOSTS = {
    "api.openai.com": "openai",
    "eu.api.openai.com": "openai",
    "us.api.openai.com": "openai",
    "openrouter.ai": "openrouter",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "google-genai",
    "aiplatform.googleapis.com": "google-vertex",
    "api.mistral.ai": "mistral",
    "api-inference.huggingface.co": "huggingface",
    "router.huggingface.co": "huggingface",
    "fal.run": "fal",
    "queue.fal.run": "fal",
    "api.cohere.com": "cohere",
    "api.cohere.ai": "cohere",
    "api.groq.com": "groq",
    "api.together.xyz": "together",
    "api.together.ai": "together",
    "api.replicate.com": "replicate",
    "api.linkup.so": "linkup",
}
_ENDINGS = {
    ".openai.azure.com": "azure-openai",
    ".cognitiveservices.azure.com": "azure-openai",
    ".services.ai.azure.com": "azure-openai",
    "-aiplatform.googleapis.com": "google-vertex",
}


def dialect_of_call(host: str, path: str) -> str | None:
    """The dialect in which a call is answered: some hosts offer the models of others in their own words."""
    dialect = dialect_of_host(host)
    return "anthropic" if dialect == "google-vertex" and "/publishers/anthropic/" in path else dialect


def dialect_of_host(host: str) -> str | None:
    """The dialect of the provider that answers at `host`; `None` if it is no provider's that the lab knows."""
    name = host.lower().rstrip(".")
    if name in _HOSTS:
        return _HOSTS[name]
    if name.startswith("bedrock-runtime") and name.endswith(
        (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
    ):
        return "bedrock"
    return next((dialect for ending, dialect in _ENDINGS.items() if name.endswith(ending)), None)

"""Opens pydantic-ai's models: the endpoint and the key of a file, and no retries of the SDK's own."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from failwell.agents.credentials import read_credential, refusal
from failwell.calls.sdk_retries import without_sdk_retries

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_SECONDS = 600.0
CREDENTIALS = ("api_key", "bearer_token", "auth_token")


class OpenModel:
    """A model with its connections."""

    def __init__(self, model: "Model", clients: Sequence[Any] = (), key: str | None = None) -> None:
        self.model = model
        self.clients = clients
        self.key = key
        """The key that the file names; `None` where the SDK reads one itself."""

    async def replace(self, other: "OpenModel") -> None:
        """Be `other` from now on, and close the connections from before."""
        old = OpenModel(self.model, self.clients)
        self.model, self.clients, self.key = other.model, other.clients, other.key
        await old.close()

    async def close(self) -> None:
        """Close the connections."""
        await self.model.__aexit__(None, None, None)
        for client in self.clients:
            await client.aclose()


async def open_model(name: str, settings: Mapping[str, Any]) -> OpenModel:
    """The model `provider:model`, at the endpoint and with the key that the settings name.

    Raises:
        Validation: there is no such provider, or its key or its SDK is missing.
    """
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    options = await _options(name, settings)
    clients: list[Any] = []
    try:
        model = infer_model(name, lambda provider: _provider(provider, options, clients))
    except (UserError, ValueError) as error:
        # Its texts name an option or a variable of the environment, and never a value.
        raise refusal(
            # The first sentence says what is missing; the rest is about the library's own functions.
            f"the model `{name}` cannot be used: {str(error).partition('. ')[0].partition(' or pass it')[0]}",
            "correct the name, or set the variable",
        ) from error
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        wanted = f"`{package}`, " if package else ""
        raise refusal(
            f"the model `{name}` needs {wanted}which is not installed",
            f"pip install 'pydantic-ai-slim[{name.partition(':')[0]}]'",
        ) from error
    await model.__aenter__()
    return OpenModel(model, clients, options.get("api_key"))


async def _options(name: str, settings: Mapping[str, Any]) -> dict[str, str]:
    options: dict[str, str] = {}
    if settings.get("base_url"):
        options["base_url"] = settings["base_url"]
    key = await read_credential(credential_source(settings), f"the key of `{name.partition(':')[0]}`")
    if key is not None:
        options["api_key"] = key
    return options


def credential_source(settings: Mapping[str, Any]) -> Any:
    """Where a file says that the key is, or the key; `None` if it says nothing."""
    return next((settings[key] for key in CREDENTIALS if settings.get(key)), None)


def _provider(name: str, options: Mapping[str, str], clients: list[Any]) -> Any:
    from pydantic_ai.providers import infer_provider, infer_provider_class

    if name == "cohere" and "base_url" in options:
        return _cohere(options, clients)
    if not options:
        provider = infer_provider(name)
    else:
        make = cast("Callable[..., Any]", infer_provider_class(name))
        try:
            provider = make(**options)
        except TypeError as error:
            words = " and ".join(f"`{option}`" for option in options)
            raise refusal(f"the provider `{name}` does not take {words}", "remove it") from error
    if name == "bedrock":
        # The settings of a call switch off the retries of the other clients, and not those of boto3.
        without_sdk_retries(provider.client)
    return provider


def _cohere(options: Mapping[str, str], clients: list[Any]) -> Any:
    """Cohere at an address of the file. Pydantic AI takes the address from the environment alone."""
    from os import environ

    from cohere import AsyncClientV2
    from httpx import AsyncClient
    from pydantic_ai.providers.cohere import CohereProvider

    key = options.get("api_key") or environ.get("CO_API_KEY")
    if not key:
        raise refusal("the provider `cohere` has no key", "set `api_key`, or the variable `CO_API_KEY`")
    connections = AsyncClient(timeout=_SECONDS)
    clients.append(connections)
    client = AsyncClientV2(api_key=key, base_url=options["base_url"], httpx_client=connections)
    return CohereProvider(cohere_client=client)

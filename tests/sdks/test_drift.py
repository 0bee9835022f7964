"""Every exception class that an installed SDK exports is known here, or listed as left alone."""

import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from failwell.adapters.registry import find
from failwell.errors.known_libraries import HOMES
from tests.sdks.matrix import has_module

EXPORTS = {
    "a2a": ("a2a.client.errors", "a2a.utils.errors"),
    "agent_framework": ("agent_framework.exceptions",),
    "agents": ("agents.exceptions", "agents.sandbox.errors"),
    "aiohttp": ("aiohttp",),
    "asyncpg": ("asyncpg.exceptions",),
    "anthropic": ("anthropic",),
    "azure": ("azure.core.exceptions", "azure.identity"),
    "boto3": ("boto3.exceptions",),
    "bson": ("bson.errors",),
    "botocore": ("botocore.exceptions",),
    "chromadb": ("chromadb.errors",),
    "cohere": ("cohere", "cohere.core.api_error"),
    "docker": ("docker.errors", "docker.credentials.errors"),
    "elastic_transport": ("elastic_transport",),
    "elasticsearch": ("elasticsearch", "elasticsearch.helpers", "elasticsearch.dsl.exceptions"),
    "fal_client": ("fal_client",),
    "fastapi": ("fastapi.exceptions",),
    "gridfs": ("gridfs.errors",),
    "google.genai": ("google.genai.errors",),
    "groq": ("groq",),
    "grpc": ("grpc", "grpc.aio"),
    "httpcore": ("httpcore",),
    "httpcore2": ("httpcore2",),
    "httpx": ("httpx",),
    "httpx2": ("httpx2",),
    "huggingface_hub": ("huggingface_hub.errors",),
    "instructor": ("instructor.core.exceptions",),
    "jsonschema": ("jsonschema.exceptions",),
    "jsonschema_rs": ("jsonschema_rs",),
    "langchain_core": ("langchain_core.exceptions",),
    "linkup": ("linkup",),
    "litellm": ("litellm.exceptions",),
    "mcp": ("mcp.shared.exceptions", "mcp.server.fastmcp.exceptions", "mcp.server.mcpserver.exceptions"),
    "mistralai": ("mistralai.client.errors", "mistralai.models.mistralerror", "mistralai.models.sdkerror"),
    "ollama": ("ollama",),
    "numpy": ("numpy.exceptions", "numpy.linalg", "numpy._core._exceptions"),
    "openai": ("openai",),
    "opensearchpy": ("opensearchpy.exceptions", "opensearchpy.helpers.errors"),
    "paramiko": ("paramiko.ssh_exception", "paramiko.sftp", "paramiko.pkey", "paramiko.config"),
    "pinecone": ("pinecone.errors.exceptions",),
    "psycopg": ("psycopg", "psycopg.errors"),
    "psycopg2": ("psycopg2", "psycopg2.errors", "psycopg2.extensions", "psycopg2.pool"),
    "pydantic": ("pydantic", "pydantic.errors"),
    "pydantic_ai": ("pydantic_ai.exceptions",),
    "pydantic_core": ("pydantic_core",),
    "pymilvus": ("pymilvus.exceptions",),
    "pymongo": ("pymongo.errors",),
    "pymysql": ("pymysql.err",),
    "pypdfium2": ("pypdfium2",),
    "qdrant_client": ("qdrant_client.http.exceptions", "qdrant_client.common.client_exceptions"),
    "redis": ("redis.exceptions", "redis.multidb.exception"),
    "replicate": ("replicate.exceptions",),
    "requests": ("requests.exceptions",),
    "sqlalchemy": ("sqlalchemy.exc", "sqlalchemy.orm.exc"),
    "temporalio": ("temporalio.exceptions", "temporalio.client", "temporalio.service"),
    "tenacity": ("tenacity",),
    "together": ("together",),
    "urllib3": ("urllib3.exceptions",),
    "weaviate": ("weaviate.exceptions",),
    "websockets": ("websockets.exceptions",),
    "autogen_core": ("autogen_core.exceptions",),
    "billiard": ("billiard.exceptions",),
    "celery": ("celery.exceptions",),
    "claude_agent_sdk": ("claude_agent_sdk",),
    "crewai": ("crewai.a2a.errors", "crewai.tools.tool_failure", "crewai.utilities.errors"),
    "dbos": ("dbos._error",),
    "dspy": ("dspy.utils.exceptions",),
    "fastmcp": ("fastmcp.exceptions",),
    "google.adk": ("google.adk.errors", "google.adk.errors.tool_execution_error"),
    "kombu": ("kombu.exceptions",),
    "langgraph": ("langgraph.errors",),
    "langgraph_sdk": ("langgraph_sdk.errors",),
    "prefect": ("prefect.exceptions",),
    "ray": ("ray.exceptions", "ray.serve.exceptions"),
    "smolagents": ("smolagents.utils", "smolagents.local_python_executor"),
    "yaml": ("yaml",),
}
"""An SDK → the modules in which it, or an earlier major of it, shows its exceptions."""

_BUILTIN = "a subclass of a built-in class, and read as that"
LEFT_ALONE = {
    "celery.exceptions.WorkerShutdown": "how a worker is told to stop; a SystemExit",
    "celery.exceptions.WorkerTerminate": "how a worker is told to stop; a SystemExit",
    "fastapi.exceptions.HTTPException": "how a route answers; FastAPI catches it",
    "fastapi.exceptions.WebSocketException": "how a route answers; FastAPI catches it",
    "jsonschema.exceptions._Error": "a base class that is never raised",
    "jsonschema.exceptions._RefResolutionError": "deprecated, and wrapped before it is raised",
    "jsonschema.exceptions._WrappedReferencingError": "deprecated, and wrapped before it is raised",
    "pydantic.errors.PydanticImportError": _BUILTIN,
    "pydantic.errors.PydanticUndefinedAnnotation": _BUILTIN,
    "numpy._core._exceptions.MemoryError": _BUILTIN,
    "weaviate.exceptions._BatchStreamShutdownError": "a signal inside the batch; weaviate catches it",
    "pydantic_ai.exceptions.FallbackExceptionGroup": "a group, which is as bad as its worst member",
    "pydantic_core._pydantic_core.PydanticCustomError": "raised inside a validator; pydantic catches it",
    "pydantic_core._pydantic_core.PydanticKnownError": "raised inside a validator; pydantic catches it",
    "pydantic_core._pydantic_core.PydanticOmit": "raised inside a validator; pydantic catches it",
    "pydantic_core._pydantic_core.PydanticSerializationError": _BUILTIN,
    "pydantic_core._pydantic_core.PydanticSerializationUnexpectedValue": _BUILTIN,
    "pydantic_core._pydantic_core.PydanticUseDefault": "raised inside a validator; pydantic catches it",
}
"""Classes that need no entry, each with the reason."""

INSTALLED = [sdk for sdk in EXPORTS if has_module(sdk)]


def _is_installed(top: str) -> bool:
    # Some libraries put a module without a spec into `sys.modules`.
    return top in sys.modules or find_spec(top) is not None


def _exported(sdk: str) -> set[type[BaseException]]:
    top = sdk.partition(".")[0]
    return {
        thing
        for module in EXPORTS[sdk]
        for thing in _held_by(module)
        if isinstance(thing, type)
        and issubclass(thing, BaseException)
        and not issubclass(thing, Warning)
        and thing.__module__.partition(".")[0] == top
    }


def _held_by(module: str) -> list[object]:
    try:
        return list(vars(import_module(module)).values())
    except ModuleNotFoundError:
        return []


def _is_known(cls: type[BaseException]) -> bool:
    return any(
        find(above.__module__, above.__name__) is not None
        for above in cls.__mro__
        if above.__module__ != "builtins"
    )


@pytest.mark.acceptance("pipelex 38")
def test_no_installed_sdk_that_an_adapter_reads_is_left_out() -> None:
    homes = {top for top in HOMES if top not in sys.stdlib_module_names and _is_installed(top)}

    assert homes - {sdk.partition(".")[0] for sdk in EXPORTS} == set()


@pytest.mark.slow  # loads every SDK that is installed
@pytest.mark.filterwarnings("ignore")
@pytest.mark.acceptance("pipelex 38")
@pytest.mark.parametrize("sdk", INSTALLED)
def test_every_exception_class_of_an_sdk_is_mapped(sdk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # litellm fetches a price list when it is imported, unless it is told to use its own.
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")

    exported = _exported(sdk)

    unknown = sorted(f"{cls.__module__}.{cls.__name__}" for cls in exported if not _is_known(cls))

    assert exported
    assert HOMES.get(sdk.partition(".")[0]) is not None
    assert [name for name in unknown if name not in LEFT_ALONE] == []

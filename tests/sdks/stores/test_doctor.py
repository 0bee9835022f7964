"""The doctor knows every exception of the clients that are tested here."""

import pytest

from failwell.adapters.doctor.sdks import installed

pytestmark = pytest.mark.slow

CLIENTS = (
    "asyncpg", "botocore", "bson", "chromadb", "docker", "elastic_transport", "elasticsearch", "grpc", "gridfs", "numpy",
    "opensearchpy", "paramiko", "pinecone", "psycopg", "psycopg2", "pymilvus", "pymongo", "pymysql", "qdrant_client", "redis",
    "sqlalchemy", "weaviate", "websockets",
)  # fmt: skip


def test_no_exception_of_a_store_is_unknown_to_the_doctor() -> None:
    pytest.importorskip("psycopg")

    sdks = {sdk.top: sdk for sdk in installed(CLIENTS)}

    assert [top for top in CLIENTS if sdks[top].broken or not sdks[top].classes] == []
    assert {top: [entry.name for entry in sdk.unknown] for top, sdk in sdks.items() if sdk.unknown} == {}

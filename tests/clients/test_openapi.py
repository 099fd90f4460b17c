"""The OpenAPI document, judged by a validator of OpenAPI 3.1 that is not ours."""

import httpx
import openapi_spec_validator


def test_the_document_is_valid_openapi(server):
    reply = httpx.get(f"{server.url}/openapi.json", timeout=60)
    assert reply.headers["content-type"] == "application/json"
    document = reply.json()
    assert document["openapi"].startswith("3.1")
    validator = openapi_spec_validator.OpenAPIV31SpecValidator(document)
    assert [error.message for error in validator.iter_errors()] == []

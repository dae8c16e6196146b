"""JSON documents that clients send, what is wrong with them, and how OpenAPI describes them.

`Helper` parses some of them, see `correction_steps`: this module imports little.
"""

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from app.common.errors import InvalidInput, fault_of


def json_object(body: bytes, example: str) -> dict[str, Any]:
    """The JSON object in a body; `example` is one for errors. Raises InvalidInput."""
    try:
        document = from_json(body)
    except ValueError as error:
        raise invalid_json(error) from None
    if not isinstance(document, dict):
        raise no_object(example)
    return document


def invalid_json(fault: object) -> InvalidInput:
    return InvalidInput(f"The body is not valid JSON: {fault}.")


def no_object(example: str) -> InvalidInput:
    return InvalidInput(f"The body must be a JSON object, such as {example}.")


def fault_of_field(problem: Mapping[str, Any]) -> str:
    """What is wrong with a field, in one of pydantic's errors."""
    return "is required, and was not sent" if problem["type"] == "missing" else fault_of(problem)


def documented_body(schema: Mapping[str, Any], *types: str) -> dict[str, Any]:
    """OpenAPI's description of a body, by default one in JSON. `types`: the media types that it may have."""
    content = {name: {"schema": schema} for name in types or ("application/json",)}
    return {"requestBody": {"required": True, "content": content}}

"""Checks with schemathesis that a service behaves as its OpenAPI document says.

schemathesis sends valid and invalid requests, follows links between requests on jobs, omits the key, and
checks every response.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
CONFIG = Path(__file__).parent / "data" / "schemathesis.toml"
KEY = "sk-schema"  # as the file says

# schemathesis knows no parts of uploads.
HOOKS = """import schemathesis

schemathesis.serializer.alias("application/offset+octet-stream", "application/octet-stream")
"""

# Forms and queries may leave any field blank. The document does not say so for each field: generated clients
# would then accept text for numbers.
BLANK = {"type": "string", "pattern": r"^[\s\x1c-\x1f]*$"}
# A form has nothing but text. An object in a field for any text is sent as JSON, which is such a text.
SENT_AS_TEXT = {"type": ["object", "array", "number", "boolean"]}


def takes_any_text(field: dict[str, Any]) -> bool:
    """Whether a field's schema allows any string, up to its length."""
    return any(
        choice.get("type") == "string" and not {"const", "enum", "format", "pattern"} & choice.keys()
        for choice in field.get("anyOf", [field])
    )


def form_of(document: dict[str, Any], operation: dict[str, Any]) -> dict[str, Any]:
    """The schema of the form that an operation takes."""
    content = operation["requestBody"]["content"]["multipart/form-data"]
    return document["components"]["schemas"][content["schema"]["$ref"].removeprefix("#/components/schemas/")]


def strict(document: dict[str, Any]) -> dict[str, Any]:
    """The document without `default` responses, which would make every status a documented one."""
    for methods in document["paths"].values():
        for operation in methods.values():
            del operation["responses"]["default"]
        for operation in filter(None, [methods.get("post")]):
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "query":
                    parameter["schema"] = {"anyOf": [parameter["schema"], BLANK]}
            content = operation.get("requestBody", {}).get("content", {})
            if "multipart/form-data" not in content:
                continue
            form = form_of(document, operation)
            for name, field in form["properties"].items():
                if field.get("format") != "binary":
                    text = [SENT_AS_TEXT] if takes_any_text(field) else []
                    form["properties"][name] = {"anyOf": [field, BLANK, *text]}
    return document


def operations(document: dict[str, Any]) -> int:
    """How many requests a document describes, all of which schemathesis tests."""
    count = sum(len(methods) for methods in document["paths"].values())
    assert count >= 17
    return count


def check(url: str, document: dict[str, Any], folder: Path, *arguments: object) -> str:
    """Run schemathesis, assert that it found no failure, and return its output."""
    (folder / "openapi.json").write_text(json.dumps(strict(document)))
    (folder / "hooks.py").write_text(HOOKS)
    command = [SCHEMATHESIS, f"--config-file={CONFIG}", "run", "openapi.json", f"--url={url}"]
    # One worker: Python 3.11 cannot parse source in two threads at once, as Hypothesis does for its reports.
    fixed = ["--generation-database=none", "--workers=1", "--no-color"]
    run = subprocess.run(
        [*map(str, command), *fixed, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        | {"SCHEMATHESIS_HOOKS": "hooks"},
    )
    assert run.returncode == 0, "\n".join(line[:500] for line in (run.stdout + run.stderr).splitlines())
    return run.stdout

"""Whether a service does what its OpenAPI document says, whatever it is asked: schemathesis, all its checks.

It sends what the document allows and what it forbids, follows jobs from one request to the next, leaves
the key out, and looks at every answer.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
KEY = "sk-schema"

# Nobody can make up a recording or an address that has to be accepted, nor a model or a language.
CONFIG = f"""
headers = {{ Authorization = "Bearer {KEY}" }}

[[operations]]
include-method = "POST"
[operations.checks.positive_data_acceptance]
enabled = false
"""


# What forms and queries say with it is nothing, whatever they say it of. The document does not say so in
# each place, or generated clients would have to take text for numbers.
BLANK = {"type": "string", "pattern": r"^[\s\x1c-\x1f]*$"}


def strict(document: dict[str, Any]) -> dict[str, Any]:
    """The document without `default` answers, behind which every status would be a documented one."""
    for methods in document["paths"].values():
        for operation in methods.values():
            del operation["responses"]["default"]
        for operation in filter(None, [methods.get("post")]):
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "query":
                    parameter["schema"] = {"anyOf": [parameter["schema"], BLANK]}
            form = operation["requestBody"]["content"]["multipart/form-data"]["schema"]
            for name, field in form["properties"].items():
                if field.get("format") != "binary":
                    form["properties"][name] = {"anyOf": [field, BLANK]}
    return document


def check(url: str, document: dict[str, Any], folder: Path, *arguments: object) -> str:
    """Run schemathesis: what it says, once it has found no fault."""
    (folder / "openapi.json").write_text(json.dumps(strict(document)))
    (folder / "schemathesis.toml").write_text(CONFIG)
    command = [SCHEMATHESIS, "--config-file=schemathesis.toml", "run", "openapi.json", f"--url={url}"]
    fixed = ["--generation-database=none", "--workers=2", "--no-color"]
    run = subprocess.run(
        [*map(str, command), *fixed, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
    )
    assert run.returncode == 0, "\n".join(line[:500] for line in (run.stdout + run.stderr).splitlines())
    return run.stdout

"""The page at `/`, its files at `/web/…`, and the documentation of the API: `/openapi.json` and `/docs`.

Browsers load all files from this service. The page needs no API key.
"""

import json
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, get_args

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from app.api.jobs.results import ResultFormat
from app.api.page.static_files import HEADERS, StaticFolder
from app.common.languages import LANGUAGES
from app.common.options import Options
from app.engines.catalogue import DEFAULT_MODEL_ALIAS, parse_aliases
from app.settings import Settings

WEB = Path(__file__).parents[2] / "web"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' blob:; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)

PAGE_HEADERS = HEADERS | {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(self), geolocation=(), microphone=(self), usb=()",
}
# Swagger UI shows its icons as data URLs.
DOCS_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def add_pages(app: FastAPI, settings: Settings) -> None:
    """Add the page and its files. All URLs in it are relative: a proxy may put a prefix before them."""
    page = Template((WEB / "index.html").read_text(encoding="utf-8"))
    service = service_data(settings, app.version)

    data = f'<script type="application/json" id="service">{service}</script>'
    content = page.substitute(generated=data)

    async def show(request: Request) -> Response:
        return HTMLResponse(content, headers=PAGE_HEADERS)

    # A login proxy asks who the user is before it lets this request through.
    async def logged_in(request: Request) -> Response:
        return RedirectResponse("./", 303, {"Cache-Control": "no-store"})

    app.add_route("/", show, methods=["GET"], include_in_schema=False)
    app.add_route("/login", logged_in, methods=["GET"], include_in_schema=False)
    app.add_route("/web/{name:path}", StaticFolder(WEB).answer, methods=["GET"], include_in_schema=False)


def add_docs(app: FastAPI) -> None:
    """Add the documentation and its files. All URLs in it are relative, too."""

    # Not async, so it runs in a thread: the first request takes a fifth of a second to build the document.
    def schema(_: Request) -> Response:
        return Response(document(), media_type="application/json")

    @cache  # for all clients that read it slowly
    def document() -> bytes:
        return bytes(JSONResponse(with_named_bodies(app.openapi())).body)

    page = Template(Path(__file__).with_name("docs.txt").read_text(encoding="utf-8")).substitute(
        title=escape(f"{app.title} – API")
    )
    assets = StaticFolder(Path(str(files("fastapi_offline") / "static")))

    async def show(request: Request) -> Response:
        return HTMLResponse(page, headers=PAGE_HEADERS | {"Content-Security-Policy": DOCS_POLICY})

    app.add_route("/openapi.json", schema, methods=["GET"], include_in_schema=False)
    app.add_route("/docs", show, methods=["GET"], include_in_schema=False)
    app.add_route("/docs/assets/{name:path}", assets.answer, methods=["GET"], include_in_schema=False)


def with_named_bodies(document: dict[str, Any]) -> dict[str, Any]:
    """An OpenAPI document whose bodies of requests are components, by their titles.

    Generators of clients make a class of each component, and cannot make one of a name that stands twice.
    """
    components = document["components"]["schemas"]

    def named(schema: dict[str, Any]) -> dict[str, Any]:
        for kind in ("anyOf", "oneOf"):
            if kind in schema:
                return {kind: [named(one) for one in schema[kind]]}
        if schema.get("type") != "object":
            return schema
        name = schema["title"]
        assert components.setdefault(name, schema) == schema, name
        return {"$ref": f"#/components/schemas/{name}"}

    operations = [operation for path in document["paths"].values() for operation in path.values()]
    for operation in operations:
        for content in operation.get("requestBody", {}).get("content", {}).values():
            content["schema"] = named(content["schema"])
    return document


def service_data(settings: Settings, version: str) -> str:
    """What the page must know before its first request, as JSON that can stand in HTML. It has no secrets."""
    return json_in_html(
        {
            "version": version,
            "keys": settings.needs_key,
            "login": settings.trusted_user_header is not None,
            "urls": settings.allow_urls,
            "trash": settings.trash_ttl_s > 0,
            "max_upload_mb": settings.max_upload_mb,
            "aliases": [DEFAULT_MODEL_ALIAS, *parse_aliases(settings.model_aliases)],
            "languages": LANGUAGES,
            "formats": get_args(ResultFormat),
            "options": Options().model_dump(mode="json"),
        }
    )


def json_in_html(value: Any) -> str:
    """JSON without characters that mean something in HTML: no text in it can end the element around it."""
    text = json.dumps(value)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text

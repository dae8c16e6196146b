"""The API's documentation: `/openapi.json`, and Swagger UI at `/docs`.

Browsers load all of its files from this service.
"""

from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from app.api.pages import PAGE_HEADERS
from app.api.static_files import StaticFolder

# Swagger UI shows its icons as data URLs.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# URLs are relative, so the page also works behind a proxy that adds a path.
_PAGE = Template("""<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>$title</title>
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <link rel="icon" href="web/icon.svg" />
    <link rel="stylesheet" href="docs/assets/swagger-ui.css" />
  </head>
  <body>
    <div id="swagger-ui"></div>
    <script src="docs/assets/swagger-ui-bundle.js"></script>
    <script src="web/docs.js"></script>
  </body>
</html>
""")


def add_docs(app: FastAPI) -> None:
    """Add the documentation and its files."""

    # Not async, so it runs in a thread: the first request takes a fifth of a second to build the document.
    def schema(_: Request) -> Response:
        return JSONResponse(app.openapi())

    page = _PAGE.substitute(title=escape(f"{app.title} – API"))
    assets = StaticFolder(Path(str(files("fastapi_offline") / "static")))

    async def show(request: Request) -> Response:
        return HTMLResponse(page, headers=PAGE_HEADERS | {"Content-Security-Policy": POLICY})

    app.add_route("/openapi.json", schema, methods=["GET"], include_in_schema=False)
    app.add_route("/docs", show, methods=["GET"], include_in_schema=False)
    app.add_route("/docs/assets/{name:path}", assets.answer, methods=["GET"], include_in_schema=False)

"""Names in a request that the service does not use: refused, or listed in a header of the answer."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import BaseModel

from app.api.http.forms import FormFields, spellings
from app.api.jobs.signatures import LINK_PARAMETERS
from app.common.options import Options
from app.common.suggestions import nearest_name
from app.intake.uploads import Fields
from app.server.errors import invalid_input, names_of
from app.server.requests import WARNING_HEADER, warn
from app.transcript.rendering import without_effect

MAX_NAMED = 8
MAX_NAME_CHARS = 40

# OpenAPI's description of the header, for answers that may have it.
WARNING: dict[str, Any] = {
    WARNING_HEADER: {
        "schema": {"type": "string"},
        "description": "Names what the request has and the service did not use: unknown fields and "
        "parameters, and options without effect; and what is wrong with the recording. Absent if there is "
        "nothing to say.",
    }
}


async def refuse_unknown_parameters(request: Request) -> None:
    """Raise InvalidInput for parameters of a query that the path does not have. A dependency of routes."""
    if request.query_params and (unknown := _unknown_parameters(request)):
        model = next(_models(request), None)
        problems = [{"type": "extra_forbidden", "loc": (name,)} for name in unknown]
        raise invalid_input(problems, _parameters(request), getattr(model, "advice", {}))


async def note_unknown_parameters(request: Request) -> None:
    """Name them in the answer instead: clients of other programs expect no more. A dependency of routes."""
    if request.query_params and (unknown := _unknown_parameters(request)):
        _note_ignored(request, "ignored in the query", unknown, _parameters(request))


def note_unknown_fields(request: Request, form: type[FormFields], fields: Fields) -> None:
    """Name the fields of a form that the service ignores."""
    known = [name for name in names_of(form) if name not in form.fixed]
    spelled = {spelling for name in known for spelling in spellings(name)}
    unknown = [name for name, values in fields.items() if name not in spelled and any(map(str.strip, values))]
    if unknown:
        _note_ignored(request, "ignored", unknown, known)


def note_without_effect(
    request: Request, options: Options, given: Collection[str], file_format: str | None = None
) -> None:
    """Name the options that were given, and have no effect. `file_format`: None, if it is chosen later."""
    if useless := without_effect(options, given, file_format):
        _note(request, "without effect", useless, lambda name: f" ({useless[name]})")


def _unknown_parameters(request: Request) -> list[str]:
    known = {*_parameters(request), *LINK_PARAMETERS}
    given = [name for name, value in request.query_params.multi_items() if value.strip()]
    return [name for name in dict.fromkeys(given) if name not in known]


def _parameters(request: Request) -> list[str]:
    """The names of all parameters that the query of a path may have."""
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    of_models = [name for model in _models(request) for name in names_of(model)]
    single = [field.alias for field in route.dependant.query_params if _model_of(field) is None]
    return [*of_models, *single]


def _models(request: Request) -> Iterator[type[BaseModel]]:
    return filter(None, map(_model_of, request.scope["route"].dependant.query_params))


def _model_of(parameter: Any) -> type[BaseModel] | None:
    """The model of a whole query, in FastAPI's description of a parameter; None for a single one."""
    kind = parameter.field_info.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _note_ignored(request: Request, what: str, names: Collection[str], known: Collection[str]) -> None:
    def question(name: str) -> str:
        near = nearest_name(name, known)
        return f" (did you mean {near}?)" if near else ""

    _note(request, what, names, question)


def _note(
    request: Request, what: str, names: Collection[str] | Mapping[str, str], remark: Callable[[str], str]
) -> None:
    shown = [f"{_ascii(name)}{remark(name)}" for name in list(names)[:MAX_NAMED]]
    if len(names) > MAX_NAMED:
        shown.append(f"and {len(names) - MAX_NAMED} more")
    warn(request, [f"{what}: {', '.join(shown)}"])


def _ascii(name: str) -> str:
    """A name that a client has chosen, as a header may have it: in ASCII, and not blank."""
    return ascii(name[:MAX_NAME_CHARS])[1:-1][:MAX_NAME_CHARS].strip() or '""'

"""How a view says in the OpenAPI schema what it takes, answers and refuses."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from drf_spectacular.utils import extend_schema
from rest_framework.serializers import Serializer

Method = TypeVar("Method", bound=Callable[..., Any])
Answers = Mapping[int, Any]


def documented(
    *,
    answers: Answers,
    raises: Sequence[type[Exception]] = (),
    takes: type[Serializer[Any]] | None = None,
    query: type[Serializer[Any]] | None = None,
    auth: Sequence[Mapping[str, Sequence[str]]] | None = None,
    tag: str,
) -> Callable[[Method], Method]:
    """Describe one method of a view; its docstring is the rest.

    ``raises`` are the domain errors it lets through: the project knows the problem each becomes, and adds
    those that come from DRF by itself.
    """

    def describe(method: Method) -> Method:
        method.raises = tuple(raises)  # type: ignore[attr-defined]
        described: Method = extend_schema(
            request=takes,
            responses=dict(answers),
            parameters=[] if query is None else [query],
            auth=auth,  # type: ignore[arg-type]  # its annotation knows names only, its documentation both
            tags=[tag],
        )(method)
        return described

    return describe

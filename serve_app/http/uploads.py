"""A pipeline's inputs out of a request: flags of its query, and images, as multipart fields or as the body itself.

Everything stays in memory: pictures of people are never spooled to a file.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from serve_app.problem import Problem
from serve_app.spec.pipeline import Images, Pipeline
from serve_app.spec.ray import Service

# Beyond what a pipeline takes; which of them are too many is said by name afterwards.
_MORE_PARTS = 100


class _InMemoryParser(MultiPartParser):
    spool_max_size = 2**62


async def read_inputs(request: Request, pipeline: Pipeline, service: Service) -> dict[str, Any]:
    """Each image's bytes, or list of bytes, and each flag. Problem 400, 413 or 415 where the request is otherwise.

    Nothing is read beyond the service's limits.
    """
    flags = _flags(request, pipeline.flags)
    return {**flags, **await _images(request, pipeline.images, service)}


def _flags(request: Request, names: Sequence[str]) -> dict[str, bool]:
    flags = dict.fromkeys(names, False)
    for name, value in request.query_params.multi_items():
        if name not in flags:
            known = f"send only {', '.join(names)}" if names else "this route takes none"
            raise Problem(400, "unknown_parameter", f"the query has a parameter that is not known; {known}")
        if value not in ("true", "false") or len(request.query_params.getlist(name)) > 1:
            raise Problem(400, "bad_flag", f"send {name} once, as true or false", field=name)
        flags[name] = value == "true"
    return flags


async def _images(request: Request, inputs: Mapping[str, Images], service: Service) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        form = await _form(request, sum(images.most for images in inputs.values()), service.request_limit)
        try:
            return _fields(form, inputs, service.upload_limit)
        finally:
            await form.close()
    single = [name for name, images in inputs.items() if not images.many]
    if len(inputs) == 1 and single and (kind.startswith("image/") or kind == "application/octet-stream"):
        return {single[0]: await _body(request, single[0], service.upload_limit)}
    accepted = "multipart/form-data" + (
        ", or the picture itself as image/jpeg or the like" if single == [*inputs] else ""
    )
    raise Problem(415, "unsupported_media_type", f"the content type is {kind or 'missing'}; send {accepted}")


async def _body(request: Request, name: str, limit: int) -> bytes:
    try:
        body = b"".join([chunk async for chunk in _limited(request, limit)])
    except _TooLarge as large:
        raise Problem(413, "too_large", large.message, field=name) from None
    if not body:
        raise Problem(400, "missing_input", "the body is empty; send the picture as the body", field=name)
    return body


class _TooLarge(MultiPartException):
    """The kind of exception on which the parser lets go of what it holds."""


async def _limited(request: Request, limit: int) -> AsyncGenerator[bytes, None]:
    """The body's chunks. _TooLarge as soon as they are more than `limit` bytes."""
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise _TooLarge(f"the request is larger than {limit:,} bytes; send smaller pictures")
        yield chunk


async def _form(request: Request, files: int, limit: int) -> FormData:
    """The form, where the pipeline takes `files` at the most, and a request `limit` bytes."""
    body = _limited(request, limit)
    parser = _InMemoryParser(request.headers, body, max_files=files + _MORE_PARTS, max_fields=_MORE_PARTS)
    try:
        return await parser.parse()
    except _TooLarge as large:
        raise Problem(413, "too_large", large.message) from None
    except MultiPartException as broken:
        raise Problem(
            400, "malformed_multipart", f"the form cannot be read ({broken.message}); send each picture as a file field"
        ) from None
    except (LookupError, UnicodeError):
        detail = "the content type has no boundary, or a charset that does not fit; let your HTTP client set it"
        raise Problem(400, "malformed_multipart", detail) from None


def _fields(form: FormData, inputs: Mapping[str, Images], file_limit: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in form:
        if name not in inputs:
            raise Problem(400, "unknown_field", f"send only {', '.join(inputs)}", field=name)
    for name, images in inputs.items():
        files = [_file(item, name, file_limit) for item in form.getlist(name)]
        if not images.fewest <= len(files) <= images.most:
            wanted = f"{images.fewest} to {images.most} files" if images.many else "one file"
            code = "missing_input" if len(files) < images.fewest else "too_many_files"
            raise Problem(400, code, f"send {wanted} in fields named {name}, not {len(files)}", field=name)
        values[name] = files if images.many else files[0]
    return values


def _file(item: UploadFile | str, name: str, limit: int) -> bytes:
    if isinstance(item, str):
        raise Problem(400, "malformed_multipart", f"{name} is text; send it as a file", field=name)
    content = item.file.read()
    if len(content) > limit:
        raise Problem(413, "too_large", f"the file is larger than {limit:,} bytes; send a smaller picture", field=name)
    return content

"""The server as an ASGI application: routes behind the guard, errors in OpenAI's form."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException

from app.server.body import invalid
from app.server.docs import docs_page
from app.server.errors import ApiError
from app.server.guard import Application, Guard, Message, Receive, Scope, Send
from app.server.host import Address
from app.server.routes import ANSWERS, router
from app.server.service import Service

MOST_BYTES = 16 << 20


def application(service: Service, address: Address, key: str | None = None) -> Application:
    """Answers what is meant for ``address``; ``key`` None: none is asked for."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        service.port.attach()
        # One look into the models' folder at a time.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1, "server-files"))
        yield
        service.close()

    app = FastAPI(
        title="Slipstream",
        version="1",
        description="Language models on this machine, behind the interface of OpenAI's.",
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        lifespan=life,
    )
    app.include_router(router(service))

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(docs_page(app.openapi()))

    @app.exception_handler(ApiError)
    async def api_error(request: Request, error: ApiError) -> Response:
        return JSONResponse(error.body(), error.status, headers=error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid_body(request: Request, error: RequestValidationError) -> Response:
        return await api_error(request, invalid(error))

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        words = {404: "There is no such route.", 405: "This route has no such method."}
        message = words.get(error.status_code, "The request cannot be served.")
        made = ApiError(error.status_code, message, code="not_found" if error.status_code == 404 else None)
        return JSONResponse(made.body(), error.status_code, headers=dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> Response:
        made = ApiError(500, "The server failed; its log says more.", type="server_error")
        return JSONResponse(made.body(), 500)

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        async def count(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "other")
                service.metrics.request(route, message["status"])
            await send(message)

        await app(scope, receive, count)

    def admit(path: str, client: str | None) -> None:
        if path in ANSWERS:
            service.admit(path, client)

    return Guard(
        counted,
        hosts=address.allowed_hosts(),
        origins=address.allowed_origins(),
        readers=address.named_origins(),
        key=key,
        most_bytes=MOST_BYTES,
        admit=admit,
    )

"""/v1/embeddings, for embedding models."""

from __future__ import annotations

import base64

import numpy as np
from fastapi import Request, Response
from fastapi.responses import JSONResponse

from app.server.requests import EmbeddingsRequest
from app.server.sending import unless_gone
from app.server.service import Service

ROUTE = "/v1/embeddings"


async def embeddings(service: Service, body: EmbeddingsRequest, request: Request) -> Response:
    async def work() -> Response:
        embedded = await service.embed(body.model, body.texts())
        told = [
            {"object": "embedding", "index": index, "embedding": _vector(data, body.encoding_format)}
            for index, data in enumerate(embedded.vectors)
        ]
        usage = {"prompt_tokens": embedded.tokens, "total_tokens": embedded.tokens}
        return JSONResponse({"object": "list", "data": told, "model": body.model, "usage": usage})

    return await unless_gone(request, work)


def _vector(data: bytes, encoding: str) -> str | list[float]:
    if encoding == "base64":
        return base64.b64encode(data).decode()
    numbers: list[float] = np.frombuffer(data, dtype="<f4").tolist()
    return numbers

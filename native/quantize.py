"""llama.cpp's own quantiser: one GGUF in, the same model with other weight types out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from llama_cpp import llama_cpp as lib

from native.errors import NativeError
from native.log import mark, problems_since

WeightType = Literal["F32", "F16", "Q8_0", "Q4_1", "Q4_K_M", "Q2_K"]

_FILE_TYPES: dict[WeightType, int] = {
    "F32": lib.LLAMA_FTYPE_ALL_F32,
    "F16": lib.LLAMA_FTYPE_MOSTLY_F16,
    "Q8_0": lib.LLAMA_FTYPE_MOSTLY_Q8_0,
    "Q4_1": lib.LLAMA_FTYPE_MOSTLY_Q4_1,
    "Q4_K_M": lib.LLAMA_FTYPE_MOSTLY_Q4_K_M,
    "Q2_K": lib.LLAMA_FTYPE_MOSTLY_Q2_K,
}


def quantize(source: Path, target: Path, weights: WeightType) -> None:
    """Write ``source`` to ``target`` with other weights. Raises NativeError, leaving no half file."""
    params = lib.llama_model_quantize_default_params()
    params.ftype = _FILE_TYPES[weights]
    params.allow_requantize = True
    before = mark()
    status = lib.llama_model_quantize(os.fsencode(source), os.fsencode(target), params)
    if status != 0:
        target.unlink(missing_ok=True)
        raise NativeError(f"{source.name} could not be written as {weights}", problems_since(before))

"""llama.cpp's staging API (llama-ext.h): C++ functions without a C name, which a build may not have.

llama-cpp-python binds some of them in ``llama_cpp_ext``; here are all that drafter heads need, found
by the names that the Itanium and Microsoft compilers give them.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

from llama_cpp import llama_cpp as lib

from native.errors import NativeError

_POINTER = ctypes.c_void_p  # to a context, a model, or floats: as an address, which numpy can view


class _Symbol(NamedTuple):
    itanium: str
    microsoft: str
    arguments: tuple[Any, ...]
    result: Any


_SYMBOLS = {
    "set_embeddings_layer_inp": _Symbol(
        "_Z30llama_set_embeddings_layer_inpP13llama_contextjb",
        "?llama_set_embeddings_layer_inp@@YAXPEAUllama_context@@I_N@Z",
        (_POINTER, ctypes.c_uint32, ctypes.c_bool),
        None,
    ),
    "get_embeddings_layer_inp": _Symbol(
        "_Z30llama_get_embeddings_layer_inpP13llama_contextj",
        "?llama_get_embeddings_layer_inp@@YAPEAMPEAUllama_context@@I@Z",
        (_POINTER, ctypes.c_uint32),
        _POINTER,
    ),
    "set_embeddings_nextn": _Symbol(
        "_Z26llama_set_embeddings_nextnP13llama_contextbb",
        "?llama_set_embeddings_nextn@@YAXPEAUllama_context@@_N1@Z",
        (_POINTER, ctypes.c_bool, ctypes.c_bool),
        None,
    ),
    "get_embeddings_nextn": _Symbol(
        "_Z26llama_get_embeddings_nextnP13llama_context",
        "?llama_get_embeddings_nextn@@YAPEAMPEAUllama_context@@@Z",
        (_POINTER,),
        _POINTER,
    ),
    "set_nextn_layer_offset": _Symbol(
        "_Z28llama_set_nextn_layer_offsetP13llama_contexti",
        "?llama_set_nextn_layer_offset@@YAXPEAUllama_context@@H@Z",
        (_POINTER, ctypes.c_int32),
        None,
    ),
    "model_target_layer_ids": _Symbol(
        "_Z28llama_model_target_layer_idsPK11llama_model",
        "?llama_model_target_layer_ids@@YAPEBHPEBUllama_model@@@Z",
        (_POINTER,),
        ctypes.POINTER(ctypes.c_int32),
    ),
    "model_target_layer_ids_n": _Symbol(
        "_Z30llama_model_target_layer_ids_nPK11llama_model",
        "?llama_model_target_layer_ids_n@@YAIPEBUllama_model@@@Z",
        (_POINTER,),
        ctypes.c_uint32,
    ),
}


@cache
def function(name: str) -> Any:
    """``llama_`` + ``name`` of this build. Raises NativeError where it has no such function."""
    symbol = _SYMBOLS[name]
    for exported in (symbol.itanium, symbol.microsoft, f"llama_{name}"):
        try:
            # A function object of its own, so that the package's bindings keep their types.
            return ctypes.CFUNCTYPE(symbol.result, *symbol.arguments)((exported, lib._lib))
        except AttributeError:
            continue
    raise NativeError(f"this build of llama.cpp cannot run drafter heads: it lacks llama_{name}")


def require() -> None:
    """Raises NativeError where this build lacks any of them."""
    for name in _SYMBOLS:
        function(name)

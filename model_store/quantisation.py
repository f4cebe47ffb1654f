"""Names of quantisations, as files and their metadata give them."""

from __future__ import annotations

import re

_LABEL = re.compile(
    r"(?:(?P<stem>.*?)[-._])?"
    r"(?P<label>(?:UD[-_])?(?:I?Q\d(?:_[0-9A-Z]{1,3}){0,3}|TQ\d_\d|MXFP4(?:_MOE)?|NVFP4|BF16|FP?16|FP?32))",
    re.IGNORECASE | re.DOTALL,
)

# llama.cpp's numbers for what most of a file's tensors are (general.file_type).
_FILE_TYPES = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    19: "IQ2_XXS",
    20: "IQ2_XS",
    21: "Q2_K_S",
    22: "IQ3_XS",
    23: "IQ3_XXS",
    24: "IQ1_S",
    25: "IQ4_NL",
    26: "IQ3_S",
    27: "IQ3_M",
    28: "IQ2_S",
    29: "IQ2_M",
    30: "IQ4_XS",
    31: "IQ1_M",
    32: "BF16",
    36: "TQ1_0",
    37: "TQ2_0",
    38: "MXFP4_MOE",
}

# Four bits a weight lose little and are read twice as fast as eight; below three, much is lost.
_PREFERRED = (
    ("Q4_K_M", "UD-Q4_K_XL", "MXFP4", "MXFP4_MOE", "Q4_0", "Q4_K_S", "IQ4_XS", "IQ4_NL", "Q4_1", "Q4_K"),
    ("Q5_K_M", "UD-Q5_K_XL", "Q5_K_S", "Q5_0", "Q5_1", "Q6_K", "UD-Q6_K_XL", "Q8_0", "UD-Q8_K_XL"),
    ("UD-Q3_K_XL", "Q3_K_L", "Q3_K_M", "IQ3_M", "IQ3_S", "Q3_K_S", "IQ3_XS", "IQ3_XXS", "UD-IQ3_XXS"),
    ("F16", "BF16", "F32"),
    ("UD-Q2_K_XL", "Q2_K", "Q2_K_S", "IQ2_M", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S"),
)
_RANKS = {label: rank for rank, label in enumerate(label for labels in _PREFERRED for label in labels)}


def named_quantisation(stem: str) -> tuple[str, str]:
    """``stem`` of a file's name without the quantisation at its end, and that; "" where it has none."""
    match = _LABEL.fullmatch(stem)
    if match is None:
        return stem, ""
    label = match["label"].upper().replace("UD_", "UD-")
    return match["stem"] or "", label.replace("FP16", "F16").replace("FP32", "F32")


def quantisation_of(file_type: int | None) -> str:
    """What ``general.file_type`` stands for; "" where that is unknown."""
    return _FILE_TYPES.get(file_type, "") if file_type is not None else ""


def rank(label: str) -> int:
    """How early a quantisation is to be recommended, 0 first."""
    return _RANKS.get(label, len(_RANKS))

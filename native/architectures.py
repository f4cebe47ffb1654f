"""What llama.cpp can do for a drafter with each architecture. Asking for more ends the process.

Read off the model graphs of the llama.cpp in llama-cpp-python 0.3.36: an architecture that is missing
here would meet a failed assertion there, so a newer llama.cpp needs a look at these sets.
"""

from __future__ import annotations

LAYER_INPUTS = frozenset(
    {
        "bailingmoe3",
        "deepseek4",
        "gemma4",
        "gpt-oss",
        "hunyuan-dense",
        "hunyuan_vl",
        "lfm2",
        "lfm2moe",
        "llama",
        "mimo2",
        "minimax-01",
        "minimax-m2",
        "muse-glimmer",
        "nanbeige",
        "nemotron_h",
        "nemotron_h_moe",
        "qwen3",
        "qwen35",
        "qwen35moe",
        "qwen3moe",
        "qwen3next",
        "qwen4exp",
    }
)
"""Targets whose layers' inputs can be read, which EAGLE-3 and DFlash live on."""

LAST_OUTPUT = frozenset({"deepseek4", "mimo2", "nemotron_h", "nemotron_h_moe"})
"""Of these, targets whose last layer's output can be read like the input of a layer behind it (DFlash)."""

NEXT_N_OUTPUT = LAST_OUTPUT | {"bailingmoe3", "gemma4", "gpt-oss", "qwen35", "qwen35moe", "qwen3next"}
"""And targets that hand it out as the hidden state for their own next-n layers, where EAGLE-3 reads it."""

MTP = frozenset(
    {
        "bailingmoe3",
        "cohere2moe",
        "deepseek2",
        "deepseek32",
        "deepseek4",
        "glm-dsa",
        "glm4moe",
        "glm5-next",
        "hy_v3",
        "mimo2",
        "nemotron_h_moe",
        "qwen35",
        "qwen35moe",
        "qwen3next",
        "step35",
    }
)
"""Models whose own MTP heads can draft."""

NEXT_N_STATES = NEXT_N_OUTPUT | MTP
"""Targets whose last layer's output can be read at all, whether or not their layers' inputs can."""

SEVERAL_HEADS = frozenset({"hy_v3", "mimo2", "step35"})
"""Of these, models that may have more than one MTP head."""

ASSISTANTS = {"gemma4-assistant": "gemma4"}
"""MTP heads of an architecture of their own, by the architecture of their target."""

RECURRENT = frozenset({"arwkv7", "mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7"})
"""Models without attention: each layer has a state instead."""

SNAPSHOTS = frozenset(
    {
        "bailingmoe3",
        "deepseek4",
        "glm5-next",
        "kimi-k3",
        "lfm2",
        "lfm2moe",
        "nemotron_h",
        "nemotron_h_moe",
        "qwen35",
        "qwen35moe",
        "qwen4exp",
    }
)
"""Models whose recurrent state can go back to one that it had some tokens before."""

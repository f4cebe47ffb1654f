"""Chat templates: what they may use, what they may not, and the built-in ones (E03, E04, E07)."""

from __future__ import annotations

import datetime
import gc
import sys
import time
from collections.abc import Iterator

import pytest

from app import chat_template
from app.chat_template import ChatTemplate, TemplateError, builtin_names, builtin_source

NOW = datetime.datetime(2024, 2, 9, 12, 30)
CHAT = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": " Why? "},
]


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """A deadline that strikes in hypothesis's callback of the garbage collector becomes pytest's error."""
    gc.disable()
    yield
    gc.enable()


def render(source: str, messages: list[dict[str, str]] = CHAT, **options: bool) -> str:
    return ChatTemplate(source, bos_token="<s>", eos_token="</s>").render(messages, now=NOW, **options)


def refusal(source: str) -> str:
    """Why the template cannot be read or rendered."""
    with pytest.raises(TemplateError) as caught:
        render(source)
    return str(caught.value)


# ---- parsing


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{% if %}", "line 1: "),
        ("one\ntwo\n{% if %}", "line 3: "),
        ("{{ 'abc", "line 1: "),
        ("\n{% for m in messages %}{{ m }}", "line 2: "),
        ("{{ x|no_such_filter }}", "line 1: No filter named 'no_such_filter'"),
        ("{% generation %}x", "line 1: "),
        ("{% tea %}", "line 1: Encountered unknown tag 'tea'"),
    ],
)
def test_a_template_that_cannot_be_parsed_names_the_line(source: str, words: str) -> None:
    with pytest.raises(TemplateError, match="line ") as caught:
        ChatTemplate(source)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    "source",
    [
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{{ " + "not " * 5000 + "1 }}",
        "{% for a in [1] %}" * 25 + "{% endfor %}" * 25,
        "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
        "{{ " + "9" * 5000 + " }}",
    ],
    ids=["parentheses", "not", "loops", "ifs", "digits"],
)
def test_a_template_that_python_cannot_compile_is_an_error_of_the_template(source: str) -> None:
    with pytest.raises(TemplateError):
        ChatTemplate(source)


def test_a_template_of_50_megabytes_is_not_read() -> None:
    source = "{# x #} " * 6_250_000
    began = time.thread_time()
    with pytest.raises(TemplateError, match="50,000,000 characters"):
        ChatTemplate(source)
    assert time.thread_time() - began < 1.0


# ---- what templates expect


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ strftime_now('%d %B %Y') }}", "09 February 2024"),
        (
            '{{ {"a": ["é", "<"]}|tojson(indent=2, ensure_ascii=false) }}',
            '{\n  "a": [\n    "é",\n    "<"\n  ]\n}',
        ),
        ('{{ {"b": 1, "a": 2}|tojson(sort_keys=true, separators=(",", ":")) }}', '{"a":2,"b":1}'),
        ("{{ 'é'|tojson(ensure_ascii=true) }}", '"\\u00e9"'),
        (
            "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}"
            "{{ ns.n }}",
            "3",
        ),
        (
            "{% for m in messages %}{{ loop.previtem.role if loop.previtem is defined }}|{% endfor %}",
            "|user|assistant|",
        ),
        ("{% for m in messages %}{{ m.content }}{% break %}{% endfor %}", "Hi"),
        (
            "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ loop.index }}{% endfor %}",
            "23",
        ),
        ("{% generation %}{{ messages[0]['content'] }}{% endgeneration %}", "Hi"),
        ("{{ bos_token }}{{ eos_token }}", "<s></s>"),
        ("{{ unknown_token }}{{ messages[0].tool_calls }}", ""),
        (
            "{% if tools %}x{% endif %}{% if documents %}y{% endif %}"
            "{% if enable_thinking is defined %}z{% endif %}",
            "",
        ),
        ("{{ messages[-1].content.strip().split('h')[1] }}", "y?"),
        ("  {%- if true %}\n  kept\n  {% endif %}\nend\n", "  kept\nend\n"),
        (
            "{{ '%s %d' % ('a', 3) }}{{ 'x' * 3 }}{{ [1] * 2 }}{{ 2 ** 10 }}{{ 6 * 7 }}{{ 1.5 * 2 }}",
            "a 3xxx[1, 1]1024423.0",
        ),
        (
            "{% macro f(m) %}<{{ m.role }}>{% endmacro %}{% for m in messages[::-1] %}{{ f(m) }}{% endfor %}",
            "<user><assistant><user>",
        ),
    ],
)
def test_what_templates_expect_is_there(source: str, text: str) -> None:
    assert render(source) == text


def test_missing_tokens_are_empty() -> None:
    assert ChatTemplate("{{ bos_token }}x{{ eos_token }}").render(CHAT, now=NOW) == "x"


def test_the_date_is_the_one_given() -> None:
    template = ChatTemplate("{{ strftime_now('%H:%M') }}")
    assert template.render(CHAT, now=NOW) == "12:30"
    assert template.render(CHAT, now=NOW.replace(hour=23)) == "23:30"


def test_a_template_refuses_in_its_own_words() -> None:
    assert refusal("{{ raise_exception('System role not supported') }}") == "System role not supported"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{{ foo() }}", "'foo' is undefined"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ messages[0].content + 1 }}", "TypeError"),
        ("{% include 'x' %}", "no loader"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "RecursionError"),
    ],
)
def test_what_a_template_does_wrong_is_its_own_error(source: str, words: str) -> None:
    assert words in refusal(source)


def test_messages_are_not_changed() -> None:
    messages = [{"role": "user", "content": "x"}]
    with pytest.raises(TemplateError):
        render("{{ messages[0].update({'content': 'y'}) }}", messages)
    with pytest.raises(TemplateError):
        render("{{ messages.append(1) }}", messages)
    assert messages == [{"role": "user", "content": "x"}]


# ---- hostile templates


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ lipsum.__globals__ }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ raise_exception.__globals__ }}",
        "{{ strftime_now.__self__ }}",
        "{{ messages|map(attribute='__class__')|list|first|attr('__mro__') }}",
        "{{ '{0.__class__}'.format(messages) }}",
        "{{ ''|attr('__class__')|attr('__mro__') }}",
        "{{ namespace.__init__ }}",
    ],
)
def test_the_sandbox_lets_nobody_out(source: str) -> None:
    try:
        text = render(source)
    except TemplateError:
        return
    assert text in ("", "[]")  # jinja's attr filter gives an undefined value instead


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(10**9) %}x{% endfor %}",
        "{{ 'x' * 10**9 }}",
        "{{ 10**9 * 'x' }}",
        "{{ [0] * 10**9 }}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ 9999 ** 99 }}",
        "{% set n = namespace(x=10**90) %}{% for i in range(60) %}{% set n.x = n.x * n.x %}{% endfor %}",
        "{% for i in range(99999) %}{% for j in range(99999) %}" + "x" * 100 + "{% endfor %}{% endfor %}",
    ],
    ids=["range", "text", "text reversed", "list", "tower", "power", "squares", "output"],
)
def test_what_would_not_end_is_refused_at_once(source: str) -> None:
    began = time.thread_time()
    refusal(source)
    assert time.thread_time() - began < 1.5


def test_endless_loops_end_at_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "MAX_SECONDS", 0.2)
    began = time.thread_time()
    words = refusal("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}")
    assert "ran for over" in words
    assert time.thread_time() - began < 2.0


def test_the_cap_holds_where_python_ignores_what_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    ignored: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: ignored.append(unraisable.exc_type))

    class Endless:
        def __del__(self) -> None:
            while True:
                pass

    def run() -> None:
        Endless()
        while True:
            pass

    with pytest.raises(chat_template._Deadline):
        chat_template._within(0.01, run)
    assert ignored == [chat_template._Deadline]


def test_the_cap_does_not_hit_who_comes_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates that end just at their deadline leave no exception behind to surface later."""
    monkeypatch.setattr(chat_template, "MAX_SECONDS", 0.003)
    endless = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    quick = "{% for i in range(LENGTH) %}{% endfor %}"
    for length in range(0, 40_000, 1000):
        try:
            render(quick.replace("LENGTH", str(length)))
        except TemplateError as error:
            assert "over" in str(error)
        sum(range(20_000))
    monkeypatch.setattr(chat_template, "MAX_SECONDS", 0.01)
    refusal(endless)
    assert sum(i for i in range(100_000)) == 4_999_950_000


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'x'.ljust(2 * 10**9) }}",
        "{{ 'x' | center(2 * 10**9) }}",
        "{{ '%2000000000d' | format(1) }}",
        "{% set n = namespace(s='x' * 9999) %}{% for i in range(40) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
    ],
)
def test_a_template_cannot_fill_the_memory(source: str) -> None:
    most = _most_memory()
    words = refusal(source)
    assert "memory" in words or "over" in words
    assert _most_memory() - most < 2 * chat_template.MAX_MEMORY_BYTES


def _most_memory() -> int:
    """Bytes that this process has taken at most so far; 0 where that is not told."""
    if sys.platform != "linux":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# ---- the built-in ones

SYSTEM = {"role": "system", "content": "Be brief."}


def builtin(name: str, messages: list[dict[str, str]], *, add_generation_prompt: bool = True) -> str:
    template = ChatTemplate(builtin_source(name), bos_token="<bos>", eos_token="<eos>")
    return template.render(messages, now=NOW, add_generation_prompt=add_generation_prompt)


EXPECTED = {
    "chatml": (
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello.<|im_end|>\n"
        "<|im_start|>user\n Why? <|im_end|>\n<|im_start|>assistant\n"
    ),
    "gemma": (
        "<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nHello.<end_of_turn>\n"
        "<start_of_turn>user\nWhy?<end_of_turn>\n<start_of_turn>model\n"
    ),
    "llama-3": (
        "<bos><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nWhy?<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    ),
    "mistral": "<bos>[INST] Hi [/INST] Hello.<eos>[INST] Why? [/INST]",
    "plain": "Hi\n\nHello.\n\n Why? \n\n",
}


def test_every_builtin_is_tested() -> None:
    assert builtin_names() == sorted(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_builtin_renders_the_format_of_its_family(name: str) -> None:
    assert builtin(name, CHAT) == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_builtin_with_a_system_message(name: str) -> None:
    if name in ("gemma", "mistral"):
        with pytest.raises(TemplateError, match="no system role"):
            builtin(name, [SYSTEM, *CHAT])
    else:
        assert "Be brief." in builtin(name, [SYSTEM, *CHAT])


@pytest.mark.parametrize("name", EXPECTED)
def test_builtin_prompt_is_a_prefix_of_the_next_turns(name: str) -> None:
    """So that the KV cache of the turn before fits."""
    first = builtin(name, CHAT[:1])
    assert builtin(name, CHAT[:2], add_generation_prompt=False).startswith(first)
    assert builtin(name, CHAT).startswith(first)


def test_an_unknown_builtin_is_an_error() -> None:
    for name in ("nothing", "../chat_templates/chatml", ""):
        with pytest.raises(TemplateError, match="no chat template called"):
            builtin_source(name)

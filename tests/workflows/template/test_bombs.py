"""Templates that want too much end as a typed fault or are harmless, in little time and memory; counted, without a clock."""

import json
import subprocess
import sys

import pytest

LOOP = "{% for i in range(99999) %}BODY{% endfor %}"
NS = "{% set ns = namespace(x=START) %}{% for i in range(60) %}{% set ns.x = STEP %}{% endfor %}"


def loop(body: str) -> str:
    return LOOP.replace("BODY", body)


def grown(start: str, step: str, then: str) -> str:
    return NS.replace("START", start).replace("STEP", step) + then


NEST = ("[1]", "[ns.x, ns.x]")
PAIR = ("(1,)", "(ns.x, ns.x)")
TEXTS = [
    "{{ 'a' * 10 ** 9 }}", "{{ 1000 * s }}", "{{ (s * 4) ~ (s * 4) ~ (s * 4) }}", grown("'aa'", "ns.x ~ ns.x", "{{ ns.x | length }}"),
    grown("'aa'", "ns.x + ns.x", "{{ ns.x | length }}"), grown("'aa'", "ns.x * 2", "{{ ns.x | length }}"),
    "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}{% endfor %}",
    "{% macro m(x) %}{{ m(x ~ x) }}{% endmacro %}{{ m('aa') }}", "{% set x = 'aa' %}" + "{% set x = x ~ x %}" * 60 + "{{ x | length }}",
    loop("{{ s }}"), loop("{{ l }}"), "{% set x %}" + loop("{{ s }}") + "{% endset %}{{ x | length }}",
    "{% filter upper %}" + loop("{{ s }}") + "{% endfilter %}", "{% macro f() %}{{ s }}{{ s }}{% endmacro %}" + loop("{{ f() }}"),
    loop("{% set ns = namespace(x=s[1:]) %}{{ ns.x | length }}"), "{{ s | replace('a', s) | length }}", "{{ s.replace('a', s) | length }}",
    "{{ s.replace('', s) | length }}", "{{ l | join(s) | length }}", "{{ s.join(l | map('string')) | length }}", "{{ s.join(s) | length }}",
    "{{ l | map('replace', '1', s) | list | length }}", "{{ l | map('string') | map('center', 9999) | join | length }}",
    "{{ s.translate({97: s}) | length }}", "{{ ('a<' | e).join(l | map('string')) * 999 }}", "{{ ('<' * 4000000) | e | length }}",
    "{{ u | tojson | length }}" * 4, "{{ u | urlencode | length }}", "{{ {'a': u} | xmlattr | length }}" * 9, loop("{{ s | upper | length }}"),
]  # fmt: skip
WIDTHS = [
    "{{ '%999999999d' | format(1) }}", "{{ '%999999999d' % 1 }}", "{{ '%*d' % (999999999, 1) }}", "{{ '%.999999999f' % 1.5 }}",
    "{{ (('%(a)s' * 10000) % {'a': s}) | length }}", "{{ '%(a(b))999999999d' % {'a(b)': 1} }}", "{{ ('%(a)9999d' * 9999) % {'a': 1} }}",
    "{{ ('%(' * 200000) % {'a': 1} }}", "{{ '{:>999999999}'.format(1) }}", "{{ '{:{}}'.format(1, 999999999) }}",
    "{{ ('{0}' * 10000).format(s) | length }}", "{{ ('{0!r}' * 10000).format(l) | length }}", "{{ ('{a}' * 9999).format_map({'a': s}) | length }}",
    "{{ ('{}' | e).format(s * 4) | length }}", "{{ 'a' | center(10 ** 9) | length }}", "{{ 'a'.ljust(10 ** 9) | length }}",
    "{{ 'a'.zfill(width=10 ** 9) | length }}", "{{ ('\t' * 100000).expandtabs(tabsize=9999) | length }}", "{{ 'a\nb' | indent(10 ** 10) }}",
    "{{ ('a\n' * 10000) | indent(9999) | length }}", "{{ ('a\n' * 10000) | indent(s) | length }}", "{{ s | wordwrap(1) | length }}",
    "{{ ('a ' * 10000) | wordwrap(1, wrapstring=s) | length }}", "{{ (('(' * 50000) ~ 'x' ~ (')' * 50000)) | urlize | length }}",
    "{{ ('www.a.com ' * 10000) | urlize(rel=s) | length }}", "{{ ('<!---->' * 100000) | striptags | length }}",
    "{{ (('<b' * 100000 ~ '>' * 100000) | safe).striptags() | length }}", "{{ l | tojson(indent=10 ** 9) }}", "{{ l | json(indent=s) }}",
    "{{ l | batch(10 ** 9, 'x') | list | length }}", "{{ l | slice(10 ** 9) | list | length }}", "{{ 5 | round(-10 ** 9) }}",
]  # fmt: skip
LISTS = [
    "{{ [1] * 10 ** 9 }}", "{{ range(10 ** 9) | list }}", "{{ ((range(99999) | list) * 1000) | length }}", grown("[1]", "ns.x + ns.x", "{{ ns.x | length }}"),
    grown(*NEST, "{{ ns.x }}"), grown(*NEST, "{{ ns.x | tojson }}"), grown(*NEST, "{{ ns.x | json }}"), grown(*NEST, "{{ ns.x | pprint }}"),
    grown(*NEST, "{{ ns.x ~ '' }}"), grown(*NEST, "{{ ns.x == ns.x[:1] + ns.x[:1] }}"), grown(*NEST, "{{ ns.x[0] in [[ns.x[1]], ns.x] }}"),
    grown(*NEST, "{{ [ns.x, ns.x[:1]] | sort | length }}"), grown(*PAIR, "{{ {ns.x: 1} | length }}"), grown(*PAIR, "{{ d[ns.x] is defined }}"),
    grown(*PAIR, "{{ ns.x in d }}"), grown(*PAIR, "{{ d.get(ns.x) }}"), grown(*PAIR, "{{ [ns.x] | unique | list | length }}"),
    grown(*PAIR, "{{ dict([(ns.x, 1)]) | length }}"), grown(*PAIR, "{{ '%s' % (ns.x,) }}"), grown(*PAIR, "{{ '{}'.format(ns.x) }}"),
    "{{ ([l] * 9999) | sum(start=[]) | length }}", "{{ ([s] * 9999) | sort | length }}", "{{ ([s] * 9999) | map('lower') | sort | length }}",
    "{{ (s * 4) | list | length }}", "{{ (u * 2) | batch(2) | list | length }}", "{{ (s * 4).split('a') | length }}", "{{ (u * 2).split() | length }}",
    "{{ ('a ' * 2000000) | wordcount }}", "{{ ('\n' * 2000000).splitlines() | length }}", "{{ ([[1] * 100] * 9999) | pprint | length }}",
    "{% set ns = namespace(x=[], k=[]) %}" + loop("{% set ns.x = ns.x + [i] %}{% set ns.k = [ns.k, ns.x] %}"),
]  # fmt: skip
NUMBERS = [
    "{{ 10 ** 10 ** 9 }}", "{{ 2 ** -10 ** 9 }}", grown("9", "ns.x * ns.x", "{{ ns.x }}"), "{{ 2.5 | round(10 ** 9, 'ceil') }}",
    "{{ ('f' * 1000000) | int(base=16) // 3 }}", "{{ int('f' * 1000000) }}", "{{ (5).to_bytes(10 ** 9) }}", "{{ " + "9" * 40_000 + " }}",
]  # fmt: skip
STEPS = [
    loop(loop("")), loop("{{ l | sort | length }}"), loop("{{ 'b' in s }}"), loop("{{ s.count('b') }}"), loop("{{ l.index(9999) }}"),
    loop("{{ 9999 in l }}"), loop("{{ l | sum }}"), loop("{{ d | dictsort | length }}"), loop("{{ r | groupby('k') | length }}"),
    loop("{{ l | map('string') | join | length }}"), loop("{{ s | trim('a') | length }}"), loop("{{ s == s[:1] ~ s[1:] }}"),
    loop("{% if " + " and ".join(["i >= 0"] * 90) + " %}{% endif %}"), loop("{% set x = [" + "i," * 9_000 + "] %}"),
    "{% for x in l if " + " or ".join(["x is none"] * 80) + " %}{% endfor %}" * 20, "{% for i in range(60) recursive %}{{ loop(range(60)) }}{% endfor %}",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(90) }}", "{% block b %}{{ self.b() }}{% endblock %}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{% macro m() %}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}",
]  # fmt: skip
SOURCES = [
    "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}", "{{ " + "- " * 20_000 + "1 }}", "{{ " + "not " * 10_000 + "1 }}", "{{ 1" + "+1" * 20_000 + " }}",
    "{{ l" + ".a" * 20_000 + " }}", "{{ s" + "|upper" * 8_000 + " }}", "{{ " + "[" * 5_000 + "]" * 5_000 + " }}", "{{ [" + "1," * 24_000 + "] | length }}",
    "{{ a }}" * 100_000, "{% if 1 %}" * 2_000 + "{% endif %}" * 2_000, "{% if 0 %}" + "{% elif 0 %}" * 3_000 + "{% endif %}",
    "{% for i in l %}" * 25 + "{% endfor %}" * 25, "{{ 1 if " * 300 + "1" + " else 1 }}" * 300, "{{ '" + "a" * 2_000_000 + "' }}",
]  # fmt: skip
BOMBS = [*TEXTS, *WIDTHS, *LISTS, *NUMBERS, *STEPS, *SOURCES]
CHILD = """
import json, resource, sys, time
from failwell.errors.fault import Fault
from failwell.workflows.plan import Template
from failwell.workflows.template.render import render
from tests.workflows.template.rendering import NamesFrom

def memory(field):
    with open("/proc/self/status") as told:
        return next(int(line.split()[1]) for line in told if line.startswith(field)) / 1024

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
rows = [{"k": str(n)} for n in range(5000)]
names = {"s": "a" * 1_000_000, "u": chr(0x1F600) * 500_000, "l": list(range(10_000)), "d": {str(n): n for n in range(5000)}, "r": rows}
render(Template(text="{{ l | first }}"), NamesFrom(names))
for text in json.load(sys.stdin):
    open("/proc/self/clear_refs", "w").write("5")  # forget the peak
    before, began = memory("VmRSS"), time.process_time()
    try:
        ended = f"{len(render(Template(text=text), NamesFrom(names)))} characters"
    except Fault as fault:
        ended = type(fault).__name__
    print(json.dumps([ended, time.process_time() - began, memory("VmHWM") - before]), flush=True)
"""
MAX_SECONDS = 3
MAX_MEGABYTES = 100
HARMLESS = 20_000
"""Characters that a template may render instead of failing."""


def run(texts: list[str]) -> list[tuple[str, str, float, float]]:
    """Each text, what it ended as, its seconds and its megabytes."""
    child = subprocess.run(
        [sys.executable, "-c", CHILD], input=json.dumps(texts), capture_output=True, text=True, check=False
    )
    ended = [json.loads(line) for line in child.stdout.splitlines()]
    assert child.returncode == 0, (texts[len(ended)][:100], child.stderr[-300:])
    return [(text, *end) for text, end in zip(texts, ended, strict=True)]


def test_there_are_many_different_bombs() -> None:
    assert len(set(BOMBS)) >= 90


@pytest.mark.acceptance("relavium 67")
@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read as Linux tells it")
@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(texts, marks=pytest.mark.slow, id=name)
        for name, texts in (
            ("texts", TEXTS), ("widths", WIDTHS), ("lists", LISTS), ("numbers", NUMBERS), ("steps", STEPS), ("sources", SOURCES),
        )
    ]
    + [pytest.param(BOMBS[::7], id="some")],
)  # fmt: skip
def test_a_bomb_ends_typed_or_is_harmless_in_bounded_time_and_memory(texts: list[str]) -> None:
    wrong = [
        (text[:120], ended, seconds, megabytes)
        for text, ended, seconds, megabytes in run(texts)
        if seconds > MAX_SECONDS
        or megabytes > MAX_MEGABYTES
        or (ended.endswith("characters") and int(ended.split()[0]) > HARMLESS)
    ]

    assert wrong == []

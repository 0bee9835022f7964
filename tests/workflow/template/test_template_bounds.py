"""A template that wants too much ends as a fault, in bounded memory, and never takes the process along."""

import json
import subprocess
import sys

import pytest

GROWING = [
    "{{ 'a' * 1000000000 }}",
    "{{ [1] * 1000000000 }}",
    "{% set n = namespace(s='a') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}{{ n.s|length }}",
    "{% set n = namespace(s='a') %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}{{ n.s|length }}",
    "{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s }}",
    "{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}{{ n.s|length }}",
    "{% macro f(n, s) %}{{ f(n + 1, s ~ s) }}{% endmacro %}{{ f(1, 'a') }}",
    "{% macro f(n, s) %}{% if n < 40 %}{{ f(n + 1, [s, s]) }}{% else %}{{ s }}{% endif %}{% endmacro %}{{ f(1, [1]) }}",
    "{% for i in range(60) recursive %}{{ loop(range(60)) }}{% endfor %}",
    "{{ s|replace('a', s) }}",
    "{{ s.replace('a', s)|length }}",
    "{{ l|join(s) }}",
    "{{ s.join(l|map('string'))|length }}",
    "{{ '%999999999d'|format(1) }}",
    "{{ '{:>999999999}'.format(1) }}",
    "{{ 'a\nb'|indent(10000000000) }}",
    "{{ l|batch(1000000000, 'x')|list|length }}",
    "{{ l|slice(1000000000, 'x')|list|length }}",
    "{{ l|tojson(indent=1000000000) }}",
    "{% for a in range(100000) %}{{ s }}{% endfor %}",
    "{% for a in range(100000) %}{{ l }}{% endfor %}",
    "{% filter upper %}{% for a in range(100000) %}{{ s }}{% endfor %}{% endfilter %}",
    "{% set x %}{% for a in range(100000) %}{{ s }}{% endfor %}{% endset %}{{ x|length }}",
    "{% macro f() %}{{ s }}{{ s }}{% endmacro %}{% for a in range(10000) %}{{ f() }}{% endfor %}",
    "{{ l|map('replace', '1', s)|list|length }}",
    "{{ l|map('string')|map('center', 9999)|join|length }}",
    "{{ " + "(" * 50_000 + "1" + ")" * 50_000 + " }}",
    "{{ " + "-" * 290 + "1 }}" + "{% if 1 %}" * 300 + "{% endif %}" * 300,
    "{{ 1" + "+1" * 30_000 + " }}",
    "{{ l" + ".a" * 30_000 + " }}",
    "{{ s" + "|upper" * 30_000 + " }}",
    "{{ " + "~".join(["s * 100"] * 20) + " }}",
]
ENDLESS = [
    "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}",
    "{% for i in range(100000) %}{{ l|sort|length }}{% endfor %}",
    "{% for i in range(100000) %}{{ s|upper|length }}{% endfor %}",
]
CHILD = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from failwell.errors.fault import Fault
from failwell.workflows.template import memory_budget as budget
from tests.workflow.template.rendering import NamesFrom
from failwell.workflows.plan import Template
from failwell.workflows.template.render import render
budget.MAX_SECONDS = float(sys.argv[1])
names = NamesFrom({"s": "a" * 1_000_000, "l": list(range(10_000))})
for text in json.load(sys.stdin):
    try:
        print(len(render(Template(text=text), names)), flush=True)
    except Fault as fault:
        print(type(fault).__name__, flush=True)
# Not `ru_maxrss`: that counts the size of the process it was forked from, and a test runner is large.
with open("/proc/self/status") as told:
    print(next(int(line.split()[1]) for line in told if line.startswith("VmHWM")) // 1024)
"""


@pytest.mark.acceptance("relavium 67")
@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is set the way Linux keeps it")
@pytest.mark.parametrize(
    ("texts", "seconds", "fault"),
    [
        pytest.param(GROWING, 30, "SandboxLimit", marks=pytest.mark.slow),
        (GROWING[::15], 30, "SandboxLimit"),
        (ENDLESS, 0.5, "SandboxTimeout"),
    ],
)
def test_what_would_fill_memory_or_never_end_is_a_fault_within_a_gibibyte(
    texts: list[str], seconds: float, fault: str
) -> None:
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(seconds)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=False,
    )

    *told, megabytes = child.stdout.split()
    assert child.returncode == 0, (texts[len(told)][:100], child.stderr[-300:])
    assert dict(zip(texts, told, strict=True)) == dict.fromkeys(texts, fault)
    assert int(megabytes) < 600

"""The words that a concept is written with.

A concept is what a sentence speaks of (a subject: the model, a key, money) or what is said of it (a state:
missing, exceeded, expired). Alternatives are separated by `|`. A word that ends in `~` stands for its plural and
`-ly` too, one that ends in `*` for the forms of a verb. Words between spaces belong together: `api key` is one alternative.
Chinese alternatives are looked for anywhere in a run of Chinese text, because it has no spaces.

Every alternative stands on at least three errors of the corpus or on a page of a vendor's documentation.
"""

SUBJECTS: dict[str, str] = {
    "model": "model~|deployment~|engine|application|version|模型",
    "this_model": "this model",
    "key": "api key~|token|credential~",
    "authentication": "authenticat*",
    "account": "account~|organi[sz]ation~",
    "money": "balance|credit~|billing|payment|fund~|spend*|budget|余额|欠费",
    "plan": "plan|upgrade",
    "quota": "quota~|usage limit~|额度",
    "limit": "limit~",
    "rate": "rate limit*|too many request~|throttl*|request rate|频率|并发",
    "long_window": "day~|daily|week~|month~",
    "region": "region|territory|location",
    "prompt": "prompt|input~|message~|payload",
    "request": "request",
    "context": "context|prompt length|上下文",
    "tokens": "tokens|text bytes",
    "safety": "safety|polic*|moderation|sensitive|guideline~",
    "unsafe_text": "inappropriate|敏感",
    "concurrency": "concurrent",
    "contention": "deadlock|is locked|conflict*",
    "url": "url|endpoint",
    "no_route": "no route",
    "provider": "provider",
    "access": "access|permission~",
    "terms": "terms",
    "memory": "memory",
    "gpu": "cuda|gpu|mps",
    "gpu_memory": "cublas_status_alloc_failed",
    "connection": "connect*|socket",
    "certificate": "certificate~",
    "server": "server|internal",
    "variable": "environment variable~",
    "module": "module",
    "field": "parameter~|argument~|field~|schema|role~|api version|output tokens",
    "bug": "has no attribute",
    "thread": "start new thread",
    "throughput": "throughput",
}

STATES: dict[str, str] = {
    "absent": "missing",
    "unknown": "unknown",
    "missing": "nonexistent|no such|不存在",
    "retired": "deprecated|retired|removed|no longer",
    "unsupported": "unsupported|不支持",
    "disabled": "disabled|suspended|inactive",
    "denied": "denied|forbidden|unauthori[sz]*|must be verified",
    "exceeded": "exceed*|超出",
    "reached": "reached|hit",
    "exhausted": "exhaust*|deplet*|used up|insufficient|too low|out of|不足",
    "too_big": "too long|too large|too big|too many|longer than|reduce the length|过长",
    "expired": "expired|过期",
    "invalid": "invalid|incorrect|wrong|unexpected|无效",
    "required": "requir*|must|need~|未提供",
    "blocked": "blocked|refused|filtered|flagged|violat*|reject*",
    "overloaded": "overload*|capacity|busy|unavailable|繁忙",
    "failed": "fail*|error~",
    "timed_out": "timed out|timeout|deadline",
    "refused": "not known|unreachable",
    "closed": "reset|closed",
    "out_of_memory": "out of memory",
    "full": "no space left",
    "maximum": "maximum|max",
    "exists": "already",
}

NEGATED: dict[str, str] = {
    "missing": "found|find|exist~",
    "unsupported": "support",
    "not_offered": "supported",
    "disabled": "enabled|active",
    "denied": "allowed|authori[sz]*|access",
    "overloaded": "available",
    "invalid": "valid",
    "required": "provid*|set",
    "exhausted": "enough|any",
    "unreachable": "connect",
    "out_of_memory": "allocate",
    "unauthenticated": "authenticat*",
}
"""What a word means after a negation: `not found`, `could not find` and `no … found` say that it is missing."""

NEGATIONS = "not|no|cannot|unable|failed|n't"

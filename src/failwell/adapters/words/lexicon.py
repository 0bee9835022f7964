"""The words that a concept is written with.

A concept is what a sentence speaks of (a subject: the model, a key, money) or what is said of it (a state:
missing, exceeded, expired). Alternatives are separated by `|`. A word that ends in `~` stands for its plural too,
one that ends in `*` for the forms of a verb. Words between spaces belong together: `api key` is one alternative.
Chinese alternatives are looked for anywhere in a run of Chinese text, because it has no spaces.

Every alternative stands on at least three errors of the corpus or on a page of a vendor's documentation.
"""

SUBJECTS: dict[str, str] = {
    "model": "model~|deployment~|engine|application|version|模型",
    "key": "api key~|apikey|api_key|access token|security token|auth token|authentication token|api token|token"
    "|subscription key|credential~|authorization header|密钥",
    "authentication": "authenticat*|reauthenticat*",
    "account": "account~|organi[sz]ation~|project|user|principal|账户",
    "money": "balance|credit~|billing|payment|fund~|spend|spending|budget|afford|余额|欠费|充值",
    "plan": "plan|tier|paid",
    "quota": "quota~|allowance|usage limit~|额度|配额",
    "limit": "limit~|pool",
    "rate": "rate limit~|ratelimit~|rate limited|too many request~|throttl*|call rate|request rate|rate exceeded|频率|速率",
    "short_window": "second~|minute~|min|hour~|rpm|tpm|qps",
    "long_window": "day~|daily|week~|weekly|month~|monthly|tpd|rpd|每日|每天|每月",
    "region": "region|country|territory|location",
    "prompt": "prompt|input~|message~|text|context|payload|body|entity|length",
    "request": "request",
    "context": "context length|context window|context size|prompt length|input length|上下文",
    "tokens": "tokens|token count|text bytes",
    "safety": "safety|policy|policies|moderation|harmful|unsafe|sensitive|nsfw|guideline~|prohibited|敏感",
    "url": "url|endpoint|protocol",
    "no_route": "no route",
    "listing": "models are|model list|model names are|models can",
    "access": "access|permission~",
    "terms": "terms",
    "memory": "memory",
    "gpu": "cuda|gpu|mps|hip",
    "gpu_memory": "cublas_status_alloc_failed|cudamalloc failed",
    "connection": "connect*|connection~",
    "certificate": "certificate~",
    "server": "server|service|system|backend|internal",
    "variable": "environment variable~|环境变量",
    "module": "module",
    "field": "api version|output tokens|parameter~|argument~|field~|value~|schema|json|property|key|role~|format|type|image|file|参数",
    "bug": "has no attribute|positional argument~|object reference|not subscriptable|not callable|not iterable",
    "thread": "start new thread",
    "throughput": "demand throughput",
}

STATES: dict[str, str] = {
    "absent": "missing",
    "unknown": "unknown",
    "missing": "nonexistent|no such|unrecogni[sz]ed|不存在",
    "retired": "deprecated|decommissioned|retired|removed|no longer|下线",
    "unsupported": "unsupported|不支持",
    "disabled": "disabled|deactivated|suspended|locked|inactive|禁用",
    "denied": "denied|forbidden|unauthori[sz]ed|must be verified|lacks|无权",
    "exceeded": "exceed*|超出|超过",
    "reached": "reached|hit",
    "exhausted": "exhaust*|deplet*|used up|insufficient|too low|out of|spent|不足|用完",
    "too_big": "too long|too large|too big|larger than|longer than|too many tokens|too many total|reduce the length"
    "|length limit|过长",
    "expired": "expired|过期",
    "invalid": "invalid|incorrect|wrong|malformed|unexpected|corrupt*|bad or missing|无效|错误",
    "required": "require*|must|need~|未提供|缺少",
    "blocked": "blocked|refused|filtered|flagged|violat*|reject*|triggering",
    "overloaded": "overload*|at capacity|capacity|high demand|loading|busy|unavailable|try later|繁忙|饱和",
    "failed": "fail*|error~|unable|失败",
    "timed_out": "timed out|timeout|deadline exceeded|超时",
    "refused": "connection refused|not known|unreachable|connection error",
    "closed": "connection reset|reset by peer|connection aborted|socket closed|closed connection|broken pipe",
    "out_of_memory": "out of memory|allocate memory",
    "full": "no space left",
    "maximum": "maximum|max|最大",
    "exists": "already exist~|already has|已存在",
}

NEGATED: dict[str, str] = {
    "missing": "found|find|exist~|locate",
    "unsupported": "support|supports|supporting",
    "not_offered": "supported",
    "disabled": "enabled|active|been used",
    "denied": "allowed|authori[sz]ed|permitted|have access|access",
    "overloaded": "available",
    "invalid": "valid|correct|validate",
    "required": "provide~|provided|set|pass|passed",
    "exhausted": "enough|remaining|any",
    "unreachable": "connect|reach",
    "out_of_memory": "allocate",
    "unauthenticated": "authenticat*",
}
"""What a word means after a negation: `not found`, `could not find` and `no … found` say that it is missing."""

NEGATIONS = "not|no|cannot|without|unable|failed|fails|n't|doesnt"

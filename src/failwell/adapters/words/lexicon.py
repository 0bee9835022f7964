"""The words that a concept is written with.

A concept is what a sentence speaks of (a subject: the model, a key, money) or what is said of it (a state:
missing, exceeded, expired). Alternatives are separated by `|`. A word that ends in `~` stands for its plural and
`-ly` too, one that ends in `*` for the forms of a verb. Words between spaces belong together: `api key` is one alternative.
Brackets hold the spellings of one place: `max(/imum)`, `too (long/large)`. A prefix before a hyphen negates the word: `in-valid`
stands for `invalid` as well as for `valid` after a negation.
Chinese alternatives are looked for anywhere in a run of Chinese text, because it has no spaces.

Every alternative stands on at least three errors of the corpus or on a page of a vendor's documentation.
"""

SUBJECTS: dict[str, str] = {
    "model": "(model/deployment)~|engine|application|模型",
    "version": "version~|or (higher/newer/later/above)",
    "this_model": "this model",
    "key": "(api key/credential/password/secret)~|(token/jwt)",
    "authentication": "authenticat*",
    "signature": "signature~",
    "login": "(log/sign)(/ )in",
    "account": "account~|organi[sz]ation~",
    "money": "balance|(credit/fund)~|billing|payment|spend*|budget|(余额/欠费)",
    "plan": "(plan/subscription/trial)",
    "quota": "quota~|usage|(额度/用量)",
    "limit": "limit~|(上限/限额)",
    "rate": "rate limit*|throttl*|too (quick/fast/frequent)~|频(率/繁)|并发",
    "long_window": "(day/today/dai/week/month)~|(今/每/当)(日/天/月)",
    "region": "(region/country/location)",
    "prompt": "prompt",
    "input": "(input/message/text)~|payload",
    "content": "content|(image/video)~",
    "request": "request~|body",
    "context": "context|length|上下文|长度",
    "tokens": "tokens|text bytes|token (limit/count/length)",
    "safety": "(/un)safe(/ty)|polic*|(moderation/sensitive/harmful)|(risk/guideline)~",
    "unsafe_text": "(inappropriate/nsfw/moderated)|(敏感/安全审核)|(内容违规/违规内容)",
    "concurrency": "(concurrent/simultaneous)",
    "contention": "(deadlock/already in progress)|lock*|conflict*",
    "url": "url|endpoint",
    "no_route": "no route",
    "provider": "provider",
    "access": "(access/row level security policy/security policy/iam policy/network policy/organization policy/access policy)|(permission/privilege)~|authori[sz]ation",
    "terms": "terms",
    "memory": "(memory/heap/malloc/allocate)",
    "gpu": "cuda|gpu~|mps",
    "connection": "connect*",
    "certificate": "certificate~",
    "server": "server|internal",
    "variable": "environment variable~|(config/configuration/setting/profile/directive/license)~",
    "field": "(parameter/argument/field/role/column)~|schema|output tokens",
    "bug": "(has no attribute/should never happen/this is a bug/internal compiler error)",
    "assertion": "assert*",
    "dependency": "(package/module/driver/executable/plugin/artifact/gem/compiler/device)~|(librar/dependenc/binar)*",
    "install": "install*",
    "size": "(size/byte/file/row/character/duration)~",
    "service": "service~",
    "port": "port",
    "reading": "(pars/decod/convert/serializ/deserializ)*",
    "thread": "start new thread",
    "throughput": "throughput",
    "person": "user",
    "now": "(currently/temporarily/moment/momentarily/later/again/load/minute/minutes/soon)",
    "container": "(collection/database/bucket/topic/queue/namespace/keyspace/relation/warehouse/dataset/workspace/index/table/tablespace)~",
    "repeats": "max(/imum) (/number of )(retries/attempts/retry attempts/iterations/recursion depth/depth)",
    "tool": "tool~",
}

STATES: dict[str, str] = {
    "absent": "(missing/empty)",
    "none": "no",
    "missing": "no such|(不存在/无可用)",
    "retired": "(deprecat/retir/discontinu/decommission)*|(removed/no longer)|下线",
    "unsupported": "不支持",
    "disabled": "(disabled/suspended)",
    "denied": "(denied/forbidden/prohibited)|declin*|must be verified",
    "exceeded": "(exceed/overflow)*|超",
    "reached": "(reached/hit)|达到",
    "exhausted": "(exhaust/deplet)*|used up|insufficient|(too low/negative)|(out of/run out/ran out)|不足",
    "too_big": "too (long/large/big)|reduce the length|过长",
    "too_many": "too many",
    "above": "(longer/larger/greater) than",
    "out_of_bounds": "out of (bounds/range)|(must/should) be (between/greater/less/larger/at/one)",
    "expired": "(expired/ended)|过期",
    "invalid": "(incorrect/wrong/unexpected/improper)|无效",
    "malformed": "(malform/corrupt)*|(syntax error/invalid syntax/invalid type/unexpected token/unexpected character/unexpected end)",
    "mismatched": "(mismatch/mismatched/incompatible/out of date)",
    "required": "requir*|must|need~|upgrad*",
    "blocked": "(blocked/refused/filtered/flagged)|(violat/reject)*",
    "overloaded": "overload*|(high/heavy) (demand/load/traffic)|capacity|busy|(繁忙/饱和)",
    "failed": "fail*|error~",
    "timed_out": "time(/d / )out|(execution time/maximum time/time limit/walltime/took longer/ran longer)",
    "closed": "(reset/lost/dropped/closed)",
    "out_of_memory": "(out of memory/outofmemory/oom)",
    "full": "(no space left/space exceeded/out of space/disk full/disk is full)",
    "maximum": "max(/imum)",
    "exists": "already (exist/exists/has/have/in use/used/taken/registered/defined/started/a/an/being)|(duplicate/unique constraint)",
}

NEGATED: dict[str, str] = {
    "unknown": "un-known",
    "missing": "f(ou/i)nd|(locat/resolv)*|non-exist(/s/ent)",
    "unsupported": "support~|implemented",
    "mismatched": "match*",
    "not_offered": "un-supported",
    "disabled": "enabled|in-active",
    "lacking": "ha(s/ve)",
    "malformed": "(pars/decod/convert/identif/unmarshal/serializ/deserializ)*|recogni[sz]*|format",
    "denied": "(allowed/allowlist/whitelist/allowlisted/whitelisted)|un-authori[sz]*|access(/ible)|(grant/approv)*",
    "unavailable": "un-available",
    "invalid": "in-valid",
    "required": "(provid/configur/register)*|set",
    "exhausted": "enough|any",
    "unreachable": "(connect/reach/contact)",
    "out_of_memory": "allocat*",
    "unauthenticated": "authenticat*",
}
"""What a word means after a negation: `not found`, `could not find` and `no … found` say that it is missing."""

NEGATIONS = "not|no|cannot|unable|failed|n't|only"

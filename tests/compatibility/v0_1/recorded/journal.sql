PRAGMA user_version = 2;
PRAGMA application_id = 0;
BEGIN TRANSACTION;
CREATE TABLE events (
    id   INTEGER PRIMARY KEY,
    type TEXT NOT NULL,
    at   REAL NOT NULL,
    data TEXT NOT NULL,
    run  INTEGER GENERATED ALWAYS AS (id >> 32) VIRTUAL,
    seq  INTEGER GENERATED ALWAYS AS (id & 4294967295) VIRTUAL
) STRICT;
INSERT INTO "events" VALUES(4294967296,'run:started',1.79479900516656208035e+09,'{"run":"halted","workflow":"halted","file":"@FOLDER@/workflows/halted.yaml","digest":"df4f0628c1905122f7a7cb82a3534ab7d86be54b46149fd8c337ef7ebb616fdb","entry":"fetch","inputs":{"ledger":"@FOLDER@/halted"},"metadata":{"errors_file":"@FOLDER@/state/runs/halted/errors.jsonl","cwd":"@FOLDER@"}}');
INSERT INTO "events" VALUES(4294967297,'node:started',1.79479900516656208035e+09,'{"path":"fetch","scope":"","node":"fetch","type":"script","visit":1,"attempt":1,"key":"halted/fetch/1.1"}');
INSERT INTO "events" VALUES(4294967298,'node:completed',1.79479900520430302622e+09,'{"path":"fetch","duration_ms":38,"output":{"stdout":"{\"length\": 5}\n","stderr":"","exit_code":0,"length":5}}');
INSERT INTO "events" VALUES(4294967299,'route:taken',1.79479900520430302622e+09,'{"path":"fetch","scope":"","node":"fetch","to":"check"}');
INSERT INTO "events" VALUES(4294967300,'node:started',1.79479900520430302622e+09,'{"path":"check","scope":"","node":"check","type":"script","visit":1,"attempt":1,"key":"halted/check/1.1"}');
INSERT INTO "events" VALUES(4294967301,'node:failed',1.79479900521178889274e+09,'{"path":"check","attempt":1,"failure":{"envelope":{"kind":"external.ledger.locked","message":"the ledger is locked","details":{"step":"check"}},"report":{"schema":"failwell.error/1","id":"err_1a1e25b6e1bd8d0c2732633456b","kind":"external.ledger.locked","category":"resource","domain":"runtime","certainty":"unknown","blame":"workflow","retryable":false,"message":"the ledger is locked","title":"external.ledger.locked","error_type":"Fault","user_action":{"kind":"unknown","detail":""},"fingerprint":"f1-382b3efc5653e890","occurred_at":"2026-11-16T03:16:45.211472+00:00","caller_facing":true,"scene":{"run":"halted","workflow":"halted","node":"check","attempt":1},"details":{"step":"check"},"evidence":[{"rule":"declared","basis":"declared","saw":"Fault"}]},"typed":true,"frames":[{"workflow":"halted","node":"check","type":"script","kind":"external.ledger.locked","iteration":1}]},"output":{"stdout":"{\"length\": 5}\n","stderr":"","exit_code":0,"length":5}}');
INSERT INTO "events" VALUES(4294967302,'run:ending',1.79479900521178889274e+09,'{"failure":{"envelope":{"kind":"external.ledger.locked","message":"the ledger is locked","details":{"step":"check"}},"report":{"schema":"failwell.error/1","id":"err_1a1e25b6e1bd8d0c2732633456b","kind":"external.ledger.locked","category":"resource","domain":"runtime","certainty":"unknown","blame":"workflow","retryable":false,"message":"the ledger is locked","title":"external.ledger.locked","error_type":"Fault","user_action":{"kind":"unknown","detail":""},"fingerprint":"f1-382b3efc5653e890","occurred_at":"2026-11-16T03:16:45.211472+00:00","caller_facing":true,"scene":{"run":"halted","workflow":"halted","node":"check","attempt":1},"details":{"step":"check"},"evidence":[{"rule":"declared","basis":"declared","saw":"Fault"}]},"typed":true,"frames":[{"workflow":"halted","node":"check","type":"script","kind":"external.ledger.locked","iteration":1}]},"error_type":"UnhandledWorkflowError","node":"check"}');
INSERT INTO "events" VALUES(4294967303,'run:failed',1.79479900521178889274e+09,'{"error_type":"UnhandledWorkflowError","node":"check","failure":{"envelope":{"kind":"external.ledger.locked","message":"the ledger is locked","details":{"step":"check"}},"report":{"schema":"failwell.error/1","id":"err_1a1e25b6e1bd8d0c2732633456b","kind":"external.ledger.locked","category":"resource","domain":"runtime","certainty":"unknown","blame":"workflow","retryable":false,"message":"the ledger is locked","title":"external.ledger.locked","error_type":"Fault","user_action":{"kind":"unknown","detail":""},"fingerprint":"f1-382b3efc5653e890","occurred_at":"2026-11-16T03:16:45.211472+00:00","caller_facing":true,"scene":{"run":"halted","workflow":"halted","node":"check","attempt":1},"details":{"step":"check"},"evidence":[{"rule":"declared","basis":"declared","saw":"Fault"}]},"typed":true,"frames":[{"workflow":"halted","node":"check","type":"script","kind":"external.ledger.locked","iteration":1}]},"envelope":{"kind":"external.ledger.locked","message":"the ledger is locked","details":{"step":"check"}},"frames":[{"workflow":"halted","node":"check","type":"script","kind":"external.ledger.locked","iteration":1}],"typed":true,"errors_file":"@FOLDER@/state/runs/halted/errors.jsonl","usage":{"cost_usd":0.0},"duration":0.045}');
INSERT INTO "events" VALUES(8589934592,'run:started',1.79479900640102505685e+09,'{"run":"gate","workflow":"gate","file":"@FOLDER@/workflows/gate.yaml","digest":"4086e083506643e36d4d9ecbe39aee356e7b3e22f4a8f7e2eb1fd106b7011286","entry":"fetch","inputs":{"ledger":"@FOLDER@/gate"},"metadata":{"errors_file":"@FOLDER@/state/runs/gate/errors.jsonl","cwd":"@FOLDER@"}}');
INSERT INTO "events" VALUES(8589934593,'node:started',1.79479900640102505685e+09,'{"path":"fetch","scope":"","node":"fetch","type":"script","visit":1,"attempt":1,"key":"gate/fetch/1.1"}');
INSERT INTO "events" VALUES(8589934594,'node:completed',1.79479900645707702634e+09,'{"path":"fetch","duration_ms":56,"output":{"stdout":"{\"length\": 5}\n","stderr":"","exit_code":0,"length":5}}');
INSERT INTO "events" VALUES(8589934595,'route:taken',1.79479900645707702634e+09,'{"path":"fetch","scope":"","node":"fetch","to":"approve"}');
INSERT INTO "events" VALUES(8589934596,'node:started',1.79479900645707702634e+09,'{"path":"approve","scope":"","node":"approve","type":"human_gate","visit":1,"attempt":1,"key":"gate/approve/1.1"}');
INSERT INTO "events" VALUES(8589934597,'human_gate:paused',1.79479900645707702634e+09,'{"path":"approve","node":"approve","gate":"approve","type":"human_gate","prompt":"Publish 5 records?","options":[{"label":"Publish","value":"publish"},{"label":"Drop","value":"drop"}]}');
INSERT INTO "events" VALUES(8589934598,'run:paused',1.79479900645707702634e+09,'{"gates":["approve"],"pending_gate_count":1}');
INSERT INTO "events" VALUES(12884901888,'run:started',1.79479900747008204462e+09,'{"run":"killed","workflow":"killed","file":"@FOLDER@/workflows/killed.yaml","digest":"671b810b4f51e9397ab5e027d1261cfbf1e569d21455d4d623de3a7020c3ac9c","entry":"parts","inputs":{"ledger":"@FOLDER@/killed"},"metadata":{"errors_file":"@FOLDER@/state/runs/killed/errors.jsonl","cwd":"@FOLDER@"}}');
INSERT INTO "events" VALUES(12884901889,'node:started',1.79479900747008204462e+09,'{"path":"parts","scope":"","node":"parts","type":"set","visit":1,"attempt":1,"key":"killed/parts/1.1"}');
INSERT INTO "events" VALUES(12884901890,'node:completed',1.79479900747008204462e+09,'{"path":"parts","duration_ms":0,"output":{"names":["users","orders","invoices"]}}');
INSERT INTO "events" VALUES(12884901891,'route:taken',1.79479900747008204462e+09,'{"path":"parts","scope":"","node":"parts","to":"export"}');
INSERT INTO "events" VALUES(12884901892,'node:started',1.79479900747008204462e+09,'{"path":"export","scope":"","node":"export","type":"for_each","visit":1,"attempt":1,"key":"killed/export/1.1"}');
INSERT INTO "events" VALUES(12884901893,'group:started',1.79479900747008204462e+09,'{"path":"export","type":"for_each","keys":["0","1","2"],"items":["users","orders","invoices"],"keyed":true}');
INSERT INTO "events" VALUES(12884901894,'node:started',1.79479900747008204462e+09,'{"path":"export[0]","scope":"","node":"export_part","type":"script","visit":1,"attempt":1,"key":"killed/export[0]/1.1","parent":"export","index":0,"item":"0"}');
INSERT INTO "events" VALUES(12884901895,'node:completed',1794799007.50899,'{"path":"export[0]","duration_ms":39,"output":{"stdout":"{\"length\": 5}\n","stderr":"","exit_code":0,"length":5}}');
INSERT INTO "events" VALUES(12884901896,'node:started',1794799007.50899,'{"path":"export[1]","scope":"","node":"export_part","type":"script","visit":1,"attempt":1,"key":"killed/export[1]/1.1","parent":"export","index":1,"item":"1"}');
CREATE TABLE job_counts (
    state TEXT PRIMARY KEY,
    count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "job_counts" VALUES('cancelled',1);
INSERT INTO "job_counts" VALUES('completed',1);
INSERT INTO "job_counts" VALUES('failed',1);
INSERT INTO "job_counts" VALUES('pending',3);
INSERT INTO "job_counts" VALUES('running',1);
INSERT INTO "job_counts" VALUES('waiting',0);
CREATE TABLE job_events (
    seq  INTEGER PRIMARY KEY,
    -- Nothing where it happened to a worker.
    job  INTEGER,
    type TEXT NOT NULL,
    at   REAL NOT NULL,
    data TEXT NOT NULL
) STRICT;
INSERT INTO "job_events" VALUES(1,1,'submitted',1.7947990094399855137e+09,'{}');
INSERT INTO "job_events" VALUES(2,1,'started',1.79479900969660282131e+09,'{}');
INSERT INTO "job_events" VALUES(3,NULL,'worker:started',1.79479900989268279076e+09,'{"instance":"note","pid":27928,"generation":1}');
INSERT INTO "job_events" VALUES(4,1,'completed',1.79479900991517615314e+09,'{}');
INSERT INTO "job_events" VALUES(5,NULL,'worker:died',1794799009.96344,'{"instance":"note","pid":27928,"returncode":0,"expected":true,"kind":null,"jobs":[]}');
INSERT INTO "job_events" VALUES(6,2,'submitted',1.79479901059060859675e+09,'{}');
INSERT INTO "job_events" VALUES(7,2,'started',1.79479901081565642361e+09,'{}');
INSERT INTO "job_events" VALUES(8,NULL,'worker:started',1.79479901100333237651e+09,'{"instance":"refuse","pid":28012,"generation":1}');
INSERT INTO "job_events" VALUES(9,2,'failed',1.79479901121298527719e+09,'{"kind":"internal.bug","message":"the ledger refuses failed","attempt":1}');
INSERT INTO "job_events" VALUES(10,NULL,'worker:died',1.79479901128253412244e+09,'{"instance":"refuse","pid":28012,"returncode":0,"expected":true,"kind":null,"jobs":[]}');
INSERT INTO "job_events" VALUES(11,3,'submitted',1.79479901194273281099e+09,'{}');
INSERT INTO "job_events" VALUES(12,3,'cancelled',1.79479901248848891254e+09,'{}');
INSERT INTO "job_events" VALUES(13,4,'submitted',1.79479901305622816087e+09,'{}');
INSERT INTO "job_events" VALUES(14,4,'started',1.79479901388800120354e+09,'{}');
INSERT INTO "job_events" VALUES(15,NULL,'worker:started',1.79479901402164053912e+09,'{"instance":"slow","pid":28070,"generation":1}');
INSERT INTO "job_events" VALUES(16,5,'submitted',1.79479901474603128434e+09,'{}');
INSERT INTO "job_events" VALUES(17,6,'submitted',1.79479901539682292939e+09,'{}');
INSERT INTO "job_events" VALUES(18,7,'submitted',1.79479901575906610486e+09,'{}');
CREATE TABLE job_profiles (
    instance  TEXT NOT NULL,
    config    TEXT NOT NULL,
    samples   INTEGER NOT NULL,
    successes INTEGER NOT NULL,
    gpu_mb    REAL NOT NULL,
    ram_mb    REAL NOT NULL,
    disk_mb   REAL NOT NULL,
    seconds   REAL NOT NULL,
    updated   REAL NOT NULL,
    PRIMARY KEY (instance, config)
) STRICT, WITHOUT ROWID;
INSERT INTO "job_profiles" VALUES('note','sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',1,1,0.0,13.61328125,0.01171875,2.18022053000140658696e-01,1.79479900991515755647e+09);
INSERT INTO "job_profiles" VALUES('refuse','sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',1,0,0.0,0.0,0.0,0.0,1.79479901121291303637e+09);
CREATE TABLE job_wishes (
    key  INTEGER PRIMARY KEY AUTOINCREMENT,
    job  TEXT NOT NULL,
    wish TEXT NOT NULL,
    at   REAL NOT NULL
) STRICT;
CREATE TABLE jobs (
    -- The order in which they were handed in. The newest row is never deleted, so no number is given twice.
    key       INTEGER PRIMARY KEY,
    id        TEXT NOT NULL UNIQUE,
    instance  TEXT NOT NULL,
    state     TEXT NOT NULL,
    priority  INTEGER NOT NULL,
    submitted REAL NOT NULL,
    started   REAL,
    ended     REAL,
    attempt   INTEGER NOT NULL,
    -- Attempts that the policy counts: those that somebody else ended are not among them.
    charged   INTEGER NOT NULL,
    -- How often the host died under it.
    losses    INTEGER NOT NULL,
    due       REAL,
    reason    TEXT,
    cancelled REAL,
    phase     TEXT,
    -- Everything that was asked for, and what came of it: JSON.
    request   TEXT NOT NULL,
    result    TEXT,
    error     TEXT,
    -- The idempotency key.
    once      TEXT
) STRICT;
INSERT INTO "jobs" VALUES(1,'1a1e25b7e9ffa68878673','note','completed',0,1.7947990094399855137e+09,1.7947990096965939998e+09,1.79479900991516637797e+09,1,1,0,NULL,NULL,NULL,NULL,'{"arguments":{"ledger":"@FOLDER@/jobs","name":"completed"}}','{"noted":"completed"}',NULL,'order-1');
INSERT INTO "jobs" VALUES(2,'1a1e25b831e32026d5a1e','refuse','failed',0,1.79479901059060859675e+09,1.79479901081564855577e+09,1.79479901121297430997e+09,1,1,0,NULL,NULL,NULL,NULL,'{"arguments":{"ledger":"@FOLDER@/jobs","name":"failed"}}',NULL,'{"schema":"failwell.error/1","id":"err_1a1e25b85563f281342725e9f78","kind":"internal.bug","category":"fatal","domain":"runtime","certainty":"unknown","blame":"worker","retryable":false,"message":"the ledger refuses failed","title":"Program error","error_type":"RuntimeError","user_action":{"kind":"contact_support","detail":"see where with `failwell job show 1a1e25b831e32026d5a1e`, and correct it, or tell whoever wrote `refuse`"},"fingerprint":"f1-f2e30a8c2d9252c4","occurred_at":"2026-11-16T03:16:51.070414+00:00","scene":{"job":"1a1e25b831e32026d5a1e","capability":"refuse","instance":"refuse","attempt":1},"evidence":[{"rule":"python.RuntimeError","basis":"type","saw":"RuntimeError"}],"internal":{"repr":"RuntimeError(''the ledger refuses failed'')","traceback":"Traceback (most recent call last):\n  File \"@SOURCE@/failwell/jobs/child/main.py\", line 144, in _lane\n    made = self._perform(frame, call)\n  File \"@SOURCE@/failwell/jobs/child/main.py\", line 177, in _perform\n    return method(**arguments)\n  File \"@FOLDER@/capabilities/ledger.py\", line 19, in refuse\n    raise RuntimeError(f\"the ledger refuses {name}\")\nRuntimeError: the ledger refuses failed\n"}}',NULL);
INSERT INTO "jobs" VALUES(3,'1a1e25b88667339179d2f','note','cancelled',0,1.79479901194273281099e+09,NULL,1.79479901248848891254e+09,0,0,0,NULL,NULL,1.79479901248848891254e+09,NULL,'{"arguments":{"ledger":"@FOLDER@/jobs","name":"cancelled"}}',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(4,'1a1e25b8cc06890efa0a0','slow','running',0,1.79479901305622816087e+09,1.79479901388799118998e+09,NULL,1,1,0,NULL,NULL,NULL,NULL,'{"arguments":{"ledger":"@FOLDER@/jobs","name":"interrupted"}}',NULL,NULL,'order-2');
INSERT INTO "jobs" VALUES(5,'1a1e25b935a819fd43c1b','note','pending',0,1.79479901474603128434e+09,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,'{"arguments":{"ledger":"@FOLDER@/jobs","name":"later"}}',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(6,'1a1e25b95e4db99face32','note','pending',5,1.79479901539682292939e+09,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,'{"arguments":{"ledger":"@FOLDER@/jobs","name":"first"}}',NULL,NULL,'order-3');
INSERT INTO "jobs" VALUES(7,'1a1e25b974f909c47ccfd','refuse','pending',0,1.79479901575906610486e+09,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,'{"arguments":{"ledger":"@FOLDER@/jobs","name":"refused"},"control":{"max_attempts":1}}',NULL,NULL,NULL);
CREATE TABLE run_sources (
    run    INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    path   TEXT NOT NULL,
    digest TEXT NOT NULL REFERENCES sources (digest),
    PRIMARY KEY (run, path)
) STRICT, WITHOUT ROWID;
INSERT INTO "run_sources" VALUES(2,'@FOLDER@/workflows/gate.yaml','4086e083506643e36d4d9ecbe39aee356e7b3e22f4a8f7e2eb1fd106b7011286');
INSERT INTO "run_sources" VALUES(3,'@FOLDER@/workflows/killed.yaml','671b810b4f51e9397ab5e027d1261cfbf1e569d21455d4d623de3a7020c3ac9c');
INSERT INTO "run_sources" VALUES(1,'@FOLDER@/workflows/halted.yaml','df4f0628c1905122f7a7cb82a3534ab7d86be54b46149fd8c337ef7ebb616fdb');
CREATE TABLE runs (
    -- Never given twice, so that a writer that missed a deletion cannot write into another run.
    key           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    subject       TEXT NOT NULL CHECK (subject IN ('run', 'session')),
    workflow      TEXT NOT NULL,
    file          TEXT NOT NULL,
    digest        TEXT NOT NULL,
    started       REAL NOT NULL,
    -- From here on folded from the events, in the transaction that writes them.
    status        TEXT NOT NULL,
    ended         REAL,
    blocked_until REAL,
    gates         INTEGER NOT NULL DEFAULT 0,
    kind          TEXT,
    message       TEXT,
    node          TEXT,
    -- The process that created it, and what the workflow says about itself.
    pid           INTEGER,
    host          TEXT,
    metadata      TEXT NOT NULL
) STRICT;
INSERT INTO "runs" VALUES(1,'halted','run','halted','@FOLDER@/workflows/halted.yaml','df4f0628c1905122f7a7cb82a3534ab7d86be54b46149fd8c337ef7ebb616fdb',1.79479900516656208035e+09,'failed',1.79479900521178889274e+09,NULL,0,'external.ledger.locked','the ledger is locked','check',27740,'@HOST@','{}');
INSERT INTO "runs" VALUES(2,'gate','run','gate','@FOLDER@/workflows/gate.yaml','4086e083506643e36d4d9ecbe39aee356e7b3e22f4a8f7e2eb1fd106b7011286',1.79479900640102505685e+09,'waiting',NULL,NULL,1,NULL,NULL,NULL,27759,'@HOST@','{}');
INSERT INTO "runs" VALUES(3,'killed','run','killed','@FOLDER@/workflows/killed.yaml','671b810b4f51e9397ab5e027d1261cfbf1e569d21455d4d623de3a7020c3ac9c',1.79479900747008204462e+09,'running',NULL,NULL,0,NULL,NULL,NULL,@PID@,'@HOST@','{}');
CREATE TABLE snapshots (
    run   INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    seq   INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT;
CREATE TABLE sources (
    digest TEXT PRIMARY KEY,
    text   TEXT NOT NULL
) STRICT;
INSERT INTO "sources" VALUES('df4f0628c1905122f7a7cb82a3534ab7d86be54b46149fd8c337ef7ebb616fdb','# Ends with an error that no route takes, as long as the ledger is locked.
workflow:
  name: halted
  entry_point: fetch
  input:
    ledger: {type: string}

kinds:
  external.ledger.locked: {category: resource, summary: The ledger is locked.}

agents:
  - name: fetch
    type: script
    command: sh
    args: ["{{ workflow.dir }}/step.sh", "{{ workflow.input.ledger }}", fetch]
    routes: [{to: check}]

  - name: check
    type: script
    command: sh
    args: ["{{ workflow.dir }}/step.sh", "{{ workflow.input.ledger }}", check, guard]
    raises: [external.ledger.locked]
    routes: [{to: publish}]

  - name: publish
    type: script
    command: sh
    args: ["{{ workflow.dir }}/step.sh", "{{ workflow.input.ledger }}", publish]

output:
  fetched: "{{ fetch.output.length }}"
  published: "{{ publish.output.length }}"
');
INSERT INTO "sources" VALUES('4086e083506643e36d4d9ecbe39aee356e7b3e22f4a8f7e2eb1fd106b7011286','# Waits for somebody''s approval between two steps.
workflow:
  name: gate
  entry_point: fetch
  input:
    ledger: {type: string}

agents:
  - name: fetch
    type: script
    command: sh
    args: ["{{ workflow.dir }}/step.sh", "{{ workflow.input.ledger }}", fetch]
    routes: [{to: approve}]

  - name: approve
    type: human_gate
    prompt: "Publish {{ fetch.output.length }} records?"
    options:
      - {label: Publish, value: publish, route: publish}
      - {label: Drop, value: drop, route: $end}

  - name: publish
    type: script
    command: sh
    args: ["{{ workflow.dir }}/step.sh", "{{ workflow.input.ledger }}", publish]

output:
  approved: "{{ approve.output.selected }}"
  published: "{{ publish.output.length }}"
');
INSERT INTO "sources" VALUES('671b810b4f51e9397ab5e027d1261cfbf1e569d21455d4d623de3a7020c3ac9c','# Works through three parts, one after another; the second one waits, so that its host can be killed there.
workflow:
  name: killed
  entry_point: parts
  input:
    ledger: {type: string}

agents:
  - name: parts
    type: set
    values: {names: [users, orders, invoices]}
    routes: [{to: export}]

  - name: total
    type: script
    command: sh
    args: ["{{ workflow.dir }}/step.sh", "{{ workflow.input.ledger }}", total]

for_each:
  - name: export
    type: for_each
    source: parts.output.names
    as: part
    key_by: part
    max_concurrent: 1
    agent:
      name: export_part
      type: script
      command: sh
      args:
        - "{{ workflow.dir }}/step.sh"
        - "{{ workflow.input.ledger }}"
        - "{{ part }}"
        - "{{ ''wait'' if part == ''orders'' else '''' }}"
    routes: [{to: total}]

output:
  exported: "{{ export.count }}"
  total: "{{ total.output.length }}"
');
CREATE INDEX runs_by_start ON runs (subject, started DESC);
CREATE INDEX runs_by_status ON runs (status);
CREATE INDEX run_sources_by_digest ON run_sources (digest);
CREATE UNIQUE INDEX jobs_by_once ON jobs (once) WHERE once IS NOT NULL;
CREATE INDEX job_events_by_job ON job_events (job, seq);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('runs',3);
COMMIT;

BEGIN TRANSACTION;
CREATE TABLE blobs (hash TEXT PRIMARY KEY, body BLOB NOT NULL);
INSERT INTO "blobs" VALUES('70d102655cb4966ff8927e436a5f1adc631478bf20f4ece0e105880b3e7d077d',X'789C258EB10A42310C45F77E453EC048ADE0D0ED8D0E4E0A828BD4D7A811DA94A60EEFEFCD43B8907B0E2404115D4D8522245CA7CBA473E736586A84E921DF013C5CA191721A293A802A99EE6369B653A8485FCCFDB175F9D03C8CA5F38BEB9954EDCE3147509345323F998C820F07F47BF4E1B2F3D1AFB939B457DC9540DFDC402A9CA4E6B4E806A69A40AD6DDD0F52003684');
INSERT INTO "blobs" VALUES('b43c763ab1d4eb3594b988f7db341acd22659bb769b75a1d59cbfad9048bbf81',X'789C258EB10A02311044FBFD8AFD81957882453A4B0B2B05C146E265D515920DC95ADCDFBB873030BC81198688A0A6C21113AD0E99C7DCA599688D7878E8D7500C0A5BCAC95204C4AA99EFB634EF142EDA17CFFED8BA7E783667EDF2927AE6317CE798230E0F8B66790A3B4D61DA53D851982EDB10C3AA1B905F812BE3784B43AD78D29AD33236F0033DAE3348');
INSERT INTO "blobs" VALUES('a7e648f8fec478725899ae624ba2cd799667aae3712e12fb664d8686bd5f8864',X'789C5356F0CDCC4BE5D25588768CD548D4CB4DD104B19D623592C06C007EB807DB');
INSERT INTO "blobs" VALUES('6310b98045d101bd040eb3186b3c4fc56a4cd7af08a217a7c3ff2c78adc6bbbc',X'789C258EB10A82310C84F73C455E20522B3874737472D0C945EADF2811DA94360EFFDB9B1FE1E0F80EEE382282962B27CCB439149ECB906EA22DE1E9A95F4331A86CB964CB09109B167ED8DABD53B9EA583DFB631FFAE1C59C75C85BDA95E7F49D7349383DAC5AE425EC14433C52385088B77D4861D31DC8AFC0A5F10E7E5D8F2DE2');
INSERT INTO "blobs" VALUES('b010036d73b6033f5d1cce0036052fd31397ab55827df09e5cf81387d77a15b7',X'789C5356F0CDCC4BE5D25588768CD548D4CB4DD104B19D62359260EC44DDBCC4DCD4588D149080C2A386290A8E49F9A5250A99255C0002AA11FB');
INSERT INTO "blobs" VALUES('f665e0e5537130e64240881ed6db3f0d6a5c7482af03853597a35f812d3064a2',X'789C258EC10A02310C44EFF98AFC40A4AEE0A1378F9EDD9317A9DB2811DA94368BECDF9B451818DEC00C43445053E188897687CC63E9D24CB446BC3C75351483C29672B21401B16AE6876DCD3B858BF6CDB33FB6AE1F5ECC59BBBCA5DE780CDFB9E688C3C3A2595EC24E5398CE144E14A6F91862D87507F22B307FF5003F5DEA2DFA');
INSERT INTO "blobs" VALUES('c5db80acb46d5f37972e2d0a1b8d3436c875c9059a741ce2a2b3c7a666d17611',X'789C258EB10A02311044FBFD8AFD818518C1229D58596B6573C4CB2A2B241B92B5B8BF770F61607803330C1141CB951366DA1D0ACF754837D196F0FCD4AFA11854B65CB2E504884D0B2FB675EF54AE3A36CFFED8877E7835671DF29676E3397DE75A124E0FAB1679093BC5104F148E14E2FD1052D8F500F22B70811FD3A02CD5');
INSERT INTO "blobs" VALUES('7e2d26393d2513cb498f58c706f5248f7001dbd4e5ce3f49a2806784f947c589',X'789C5356F0CDCC4BE5D25588768CD548D4CB4DD104B19D62359260EC44DDBCC4DCD4588D149080C2A386290A8E49F9A5250A9925C8B2C998B200B6491C1A');
INSERT INTO "blobs" VALUES('bd2156085a0198689b8ee12c61e7384880959226b354bf97cd7e9b3680a53076',X'789C258EB10A02311044FBFD8AFD818518C1229DA58595563647BCACB242B221598BFB7BF71006863730C31011B45C3961A6DDA1F05C8774136D09CF4FFD1A8A4165CB255B4E80D8B4F0625BF74EE5AA63F3EC8F7DE8875773D6216F69379ED3772E25E1F4B06A9197B0530CF144E14821DE0F21855D0F20BF0257F801D3B42CDF');
CREATE TABLE breakers (
    directory TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    since REAL NOT NULL,
    until REAL NOT NULL,
    why TEXT NOT NULL
) STRICT;
CREATE TABLE change_files (
    change INTEGER NOT NULL REFERENCES changes (id),
    number INTEGER NOT NULL,
    path TEXT NOT NULL,
    before TEXT,
    after TEXT,
    before_mtime_ns INTEGER,
    mode INTEGER,
    after_mtime_ns INTEGER,
    temp TEXT NOT NULL,
    conflict INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (change, number)
) WITHOUT ROWID;
INSERT INTO "change_files" VALUES(1,0,'d.md',NULL,'6310b98045d101bd040eb3186b3c4fc56a4cd7af08a217a7c3ff2c78adc6bbbc',NULL,NULL,NULL,'.memd-1-0-6cf53276.tmp',0);
INSERT INTO "change_files" VALUES(1,1,'MEMORY.md','a7e648f8fec478725899ae624ba2cd799667aae3712e12fb664d8686bd5f8864','b010036d73b6033f5d1cce0036052fd31397ab55827df09e5cf81387d77a15b7',1772363600000000000,420,NULL,'.memd-1-1-6cf53276.tmp',0);
INSERT INTO "change_files" VALUES(2,0,'d.md','6310b98045d101bd040eb3186b3c4fc56a4cd7af08a217a7c3ff2c78adc6bbbc','f665e0e5537130e64240881ed6db3f0d6a5c7482af03853597a35f812d3064a2',1795359387544932946,384,NULL,'.memd-2-0-c6c84c6a.tmp',0);
INSERT INTO "change_files" VALUES(3,0,'c.md',NULL,'c5db80acb46d5f37972e2d0a1b8d3436c875c9059a741ce2a2b3c7a666d17611',NULL,NULL,NULL,'.memd-3-0-3b2bd498.tmp',0);
INSERT INTO "change_files" VALUES(3,1,'MEMORY.md','b010036d73b6033f5d1cce0036052fd31397ab55827df09e5cf81387d77a15b7','7e2d26393d2513cb498f58c706f5248f7001dbd4e5ce3f49a2806784f947c589',1795359387544932946,420,NULL,'.memd-3-1-3b2bd498.tmp',0);
INSERT INTO "change_files" VALUES(4,0,'m.md',NULL,'bd2156085a0198689b8ee12c61e7384880959226b354bf97cd7e9b3680a53076',NULL,NULL,NULL,'.memd-4-0-0a1b2c3d.tmp',0);
CREATE TABLE changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    directory TEXT NOT NULL,
    state TEXT NOT NULL,
    at REAL NOT NULL,
    actor TEXT NOT NULL,
    client TEXT NOT NULL,
    session TEXT NOT NULL,
    model TEXT NOT NULL,
    reason TEXT NOT NULL,
    origin TEXT NOT NULL,
    request TEXT NOT NULL,
    effects TEXT NOT NULL,
    conflicts TEXT NOT NULL
);
INSERT INTO "changes" VALUES(1,'@MEMORY@','applied',1772450000.0,'client','test','','','','','','[]','[]');
INSERT INTO "changes" VALUES(2,'@MEMORY@','applied',1772450060.0,'client','test','','','','','','[]','[]');
INSERT INTO "changes" VALUES(3,'@MEMORY@','applied',1772450180.0,'client','memctl','','','accepted proposal p1 of a dream','assistant','','[{"kind": "proposal", "proposal": "p1", "state": "accepted", "paths": "[\"c.md\"]", "reason": ""}]','[]');
INSERT INTO "changes" VALUES(4,'@MEMORY@','recorded',1772450000.0,'client','test','','','','','','[{"kind": "proposal", "proposal": "p7", "state": "accepted", "paths": "[\"m.md\"]", "reason": ""}]','[]');
CREATE TABLE clock_checks (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at REAL NOT NULL,
    steady REAL NOT NULL,
    jump REAL NOT NULL,
    behind REAL NOT NULL
) STRICT;
INSERT INTO "clock_checks" VALUES(1,1772450000.0,0.0,0.0,180.0);
CREATE TABLE clock_marks (
    at REAL PRIMARY KEY,
    change INTEGER NOT NULL,
    proposal INTEGER NOT NULL,
    surfaced INTEGER NOT NULL
) STRICT;
INSERT INTO "clock_marks" VALUES(1772363600.0,3,2,0);
CREATE TABLE cursors (
    directory TEXT NOT NULL,
    session TEXT NOT NULL,
    source TEXT NOT NULL,
    position INTEGER NOT NULL,
    marker TEXT NOT NULL,
    PRIMARY KEY (directory, session)
) WITHOUT ROWID;
CREATE TABLE dream_locks (
    directory TEXT PRIMARY KEY,
    pid INTEGER NOT NULL,
    taken_ns TEXT NOT NULL,
    prior_ns TEXT
) STRICT;
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    lane TEXT NOT NULL,
    directory TEXT NOT NULL,
    session TEXT NOT NULL,
    request TEXT NOT NULL,
    state TEXT NOT NULL,
    phase TEXT NOT NULL DEFAULT '',
    result TEXT,
    error TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    created REAL NOT NULL,
    started REAL,
    ended REAL
) STRICT;
CREATE TABLE leases (
    job INTEGER PRIMARY KEY,
    holder INTEGER NOT NULL,
    since REAL NOT NULL,
    deaths INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE pauses (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    since REAL NOT NULL
) STRICT;
CREATE TABLE proposal_states (
    number INTEGER PRIMARY KEY,
    state TEXT NOT NULL,
    decided REAL,
    reason TEXT NOT NULL,
    digest TEXT NOT NULL
) STRICT;
INSERT INTO "proposal_states" VALUES(1,'open',1772450240.0,'I need both','6c118b76b60f9c81732152cfeb9ec3a5caef9d48392377e6f240aa9809829229');
INSERT INTO "proposal_states" VALUES(2,'open',NULL,'','1c57092f458c1eadb0ad494b37e9bb7d25cd88dd7ae5be1c7d1568aa43d24e8f');
INSERT INTO "proposal_states" VALUES(3,'rejected',1772450240.0,'never','7177745b788ffdb71c8b97074b2b614d47330600ab6bddab96b4e36a7cda13f2');
INSERT INTO "proposal_states" VALUES(4,'open',NULL,'','869279b29a4f0738e11d39886b742c7cf087a7b0c83a0f44270653d333fdcd75');
INSERT INTO "proposal_states" VALUES(5,'open',NULL,'','d6029822da28ee222fd8544683663e087406487919544db532bc251fdd81bc3d');
INSERT INTO "proposal_states" VALUES(7,'open',NULL,'','858797719d628d37c368e7b5d71d7939b0184706fbeb031a24a2f74bb9936741');
CREATE TABLE proposals (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    directory TEXT NOT NULL,
    job TEXT NOT NULL,
    at REAL NOT NULL,
    content TEXT NOT NULL
) STRICT;
INSERT INTO "proposals" VALUES(1,'@MEMORY@','j1',1772450000.0,'{"engine": "fixed", "said": "I tidied up.", "problems": ["too much at once"], "edits": [{"path": "a.md", "content": "---\nname: a-name\ndescription: About it\nmetadata:\n  node_type: memory\n  type: project\n  originSessionId: s\n  modified: 2026-03-02T10:00:00Z\n---\n\nWe ship on Mondays (Ana).\n", "base": "b43c763ab1d4eb3594b988f7db341acd22659bb769b75a1d59cbfad9048bbf81", "before": "---\nname: a-name\ndescription: About it\nmetadata:\n  node_type: memory\n  type: project\n  originSessionId: s\n  modified: 2026-03-02T10:00:00Z\n---\n\nWe ship on Mondays.\n", "reason": "it says both", "merged_into": "", "state": "open", "mtime_ns": null}, {"path": "b.md", "content": null, "base": "70d102655cb4966ff8927e436a5f1adc631478bf20f4ece0e105880b3e7d077d", "before": "---\nname: a-name\ndescription: About it\nmetadata:\n  node_type: memory\n  type: project\n  originSessionId: s\n  modified: 2026-03-02T10:00:00Z\n---\n\nWe ship on Mondays, Ana says.\n", "reason": "said twice", "merged_into": "a.md", "state": "rejected", "mtime_ns": null}, {"path": "c.md", "content": "---\nname: a-name\ndescription: About it\nmetadata:\n  node_type: memory\n  type: project\n  originSessionId: s\n  modified: 2026-03-02T10:00:00Z\n---\n\nC\n", "base": "", "before": null, "reason": "", "merged_into": "", "state": "accepted", "mtime_ns": null}]}');
INSERT INTO "proposals" VALUES(2,'@MEMORY@','j1',1772450000.0,'{"engine": "fixed", "said": "I tidied up.", "problems": ["too much at once"], "edits": [{"path": "d.md", "content": "---\nname: a-name\ndescription: About it\nmetadata:\n  node_type: memory\n  type: project\n  originSessionId: s\n  modified: 2026-03-02T10:00:00Z\n---\n\nTwo.\n\nThree.\n", "base": "f665e0e5537130e64240881ed6db3f0d6a5c7482af03853597a35f812d3064a2", "before": "---\nname: a-name\ndescription: About it\nmetadata:\n  node_type: memory\n  type: project\n  originSessionId: s\n  modified: 2026-03-02T10:00:00Z\n---\n\nTwo.\n", "reason": "", "merged_into": "", "state": "open", "mtime_ns": null}, {"path": "MEMORY.md", "content": "# Mine\n- [A](a.md)\n", "base": "7e2d26393d2513cb498f58c706f5248f7001dbd4e5ce3f49a2806784f947c589", "before": "# Mine\n- [A](a.md)\n- [B](b.md)\n- [a-name](d.md) \u2014 About it\n- [a-name](c.md) \u2014 About it\n", "reason": "", "merged_into": "", "state": "open", "mtime_ns": null}, {"path": "e.md", "content": "caf\udce9\r\n", "base": "", "before": null, "reason": "", "merged_into": "", "state": "open", "mtime_ns": 7000000000}]}');
INSERT INTO "proposals" VALUES(3,'@MEMORY@','j1',1772450000.0,'{"engine": "fixed", "said": "I tidied up.", "problems": ["too much at once"], "edits": [{"path": "a.md", "content": null, "base": "b43c763ab1d4eb3594b988f7db341acd22659bb769b75a1d59cbfad9048bbf81", "before": "---\nname: a-name\ndescription: About it\nmetadata:\n  node_type: memory\n  type: project\n  originSessionId: s\n  modified: 2026-03-02T10:00:00Z\n---\n\nWe ship on Mondays.\n", "reason": "out of date", "merged_into": "", "state": "rejected", "mtime_ns": null}]}');
INSERT INTO "proposals" VALUES(4,'@MEMORY@','j1',1772450000.0,'{');
INSERT INTO "proposals" VALUES(5,'@OTHER@','j1',1772450000.0,'{"engine": "fixed", "said": "I tidied up.", "problems": ["too much at once"], "edits": [{"path": "z.md", "content": "Z", "base": "", "before": null, "reason": "", "merged_into": "", "state": "open", "mtime_ns": null}]}');
INSERT INTO "proposals" VALUES(6,'@MEMORY@','j9',1772450000.0,'{"edits": [{"path": "n.md", "content": "---\nname: a-name\ndescription: About it\nmetadata:\n  node_type: memory\n  type: project\n  originSessionId: s\n  modified: 2026-03-02T10:00:00Z\n---\n\nNew.\n", "base": null}], "merged": [], "engine": "large", "problems": ["x"], "said": "Hm"}');
INSERT INTO "proposals" VALUES(7,'@MEMORY@','j1',1772450000.0,'{"engine": "fixed", "said": "I tidied up.", "problems": ["too much at once"], "edits": [{"path": "m.md", "content": "---\nname: a-name\ndescription: About it\nmetadata:\n  node_type: memory\n  type: project\n  originSessionId: s\n  modified: 2026-03-02T10:00:00Z\n---\n\nM\n", "base": "", "before": null, "reason": "", "merged_into": "", "state": "open", "mtime_ns": null}]}');
CREATE TABLE purged_paths (
    directory TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (directory, hash)
) WITHOUT ROWID;
CREATE TABLE refusals (
    directory TEXT NOT NULL,
    path TEXT NOT NULL,
    base TEXT NOT NULL,
    number INTEGER NOT NULL,
    wanted TEXT NOT NULL,
    reason TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (directory, path, base)
) STRICT, WITHOUT ROWID;
INSERT INTO "refusals" VALUES('@MEMORY@','a.md','b43c763ab1d4eb3594b988f7db341acd22659bb769b75a1d59cbfad9048bbf81',3,'remove a.md: out of date','never',1772450240.0);
INSERT INTO "refusals" VALUES('@MEMORY@','b.md','70d102655cb4966ff8927e436a5f1adc631478bf20f4ece0e105880b3e7d077d',1,'merge b.md into a.md','I need both',1772450240.0);
CREATE TABLE requests (
    directory TEXT NOT NULL,
    client TEXT NOT NULL,
    request TEXT NOT NULL,
    at REAL NOT NULL,
    change INTEGER,
    conflicts TEXT NOT NULL,
    PRIMARY KEY (directory, client, request)
) WITHOUT ROWID;
CREATE TABLE roots (
    directory TEXT PRIMARY KEY,
    root TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE runs (
    job TEXT PRIMARY KEY,
    turns TEXT NOT NULL,
    at REAL NOT NULL
) STRICT;
CREATE TABLE shadow_directories (
    directory TEXT PRIMARY KEY,
    at REAL NOT NULL
) WITHOUT ROWID;
INSERT INTO "shadow_directories" VALUES('@MEMORY@',1772450000.0);
CREATE TABLE shadows (
    directory TEXT NOT NULL,
    path TEXT NOT NULL,
    hash TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    mtime_ns INTEGER,
    mode INTEGER,
    PRIMARY KEY (directory, path)
) WITHOUT ROWID;
INSERT INTO "shadows" VALUES('@MEMORY@','MEMORY.md','7e2d26393d2513cb498f58c706f5248f7001dbd4e5ce3f49a2806784f947c589','',NULL,420);
INSERT INTO "shadows" VALUES('@MEMORY@','a.md','b43c763ab1d4eb3594b988f7db341acd22659bb769b75a1d59cbfad9048bbf81','',1772363600000000000,420);
INSERT INTO "shadows" VALUES('@MEMORY@','b.md','70d102655cb4966ff8927e436a5f1adc631478bf20f4ece0e105880b3e7d077d','',1772363600000000000,420);
INSERT INTO "shadows" VALUES('@MEMORY@','c.md','c5db80acb46d5f37972e2d0a1b8d3436c875c9059a741ce2a2b3c7a666d17611','',NULL,NULL);
INSERT INTO "shadows" VALUES('@MEMORY@','d.md','f665e0e5537130e64240881ed6db3f0d6a5c7482af03853597a35f812d3064a2','',NULL,384);
CREATE TABLE spend (
    day TEXT NOT NULL,
    kind TEXT NOT NULL,
    project TEXT NOT NULL,
    model TEXT NOT NULL,
    requests INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_created INTEGER NOT NULL,
    money REAL NOT NULL,
    PRIMARY KEY (day, kind, project, model)
) STRICT;
CREATE TABLE surfaced (
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    path TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    at REAL NOT NULL,
    live INTEGER NOT NULL
);
CREATE TABLE visits (
    directory TEXT PRIMARY KEY,
    cwd TEXT NOT NULL,
    client TEXT NOT NULL,
    environment TEXT NOT NULL,
    at REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX changes_of_directory ON changes (directory, id);
CREATE INDEX changes_recorded ON changes (state) WHERE state = 'recorded';
CREATE INDEX changes_by_age ON changes (at);
CREATE INDEX change_files_of_path ON change_files (path, change);
CREATE INDEX change_files_before ON change_files (before);
CREATE INDEX change_files_after ON change_files (after);
CREATE INDEX requests_by_age ON requests (at);
CREATE INDEX shadows_of_blob ON shadows (hash);
CREATE INDEX jobs_by_state ON jobs (state);
CREATE INDEX jobs_by_directory ON jobs (directory, number);
CREATE INDEX proposals_of_directory ON proposals (directory, number);
CREATE UNIQUE INDEX surfaced_once
    ON surfaced (session, path, fingerprint) WHERE live;
CREATE INDEX surfaced_path ON surfaced (path, at);
CREATE INDEX surfaced_at ON surfaced (at);
CREATE INDEX surfaced_use ON surfaced (session) WHERE path = '';
CREATE INDEX runs_at ON runs (at);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('changes',4);
INSERT INTO "sqlite_sequence" VALUES('proposals',7);
COMMIT;
PRAGMA user_version=1;

"""The tables of the embedded store and the settings of its connections, which every opening checks."""

PAGE = 8192
APPLICATION, VERSION = 0x6C696B65, 2  # "like"; of the schema
SCHEMA = {
    "model": """CREATE TABLE model(id INTEGER PRIMARY KEY, name TEXT NOT NULL,
        fingerprint BLOB NOT NULL UNIQUE CHECK(length(fingerprint) = 32), width INTEGER NOT NULL CHECK(width > 0),
        unit INTEGER NOT NULL CHECK(unit IN (0, 1)), kind TEXT NOT NULL CHECK(kind IN ('float32', 'int8')),
        compatible_with INTEGER NOT NULL) STRICT""",
    "identity": """CREATE TABLE identity(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
        metadata TEXT NOT NULL CHECK(length(metadata) <= 65536)) STRICT""",
    "template": """CREATE TABLE template(slot INTEGER PRIMARY KEY, identity INTEGER NOT NULL
        REFERENCES identity ON DELETE CASCADE, model INTEGER NOT NULL REFERENCES model, source TEXT NOT NULL) STRICT""",
    "template_identity": "CREATE INDEX template_identity ON template(identity)",
    "chunk": """CREATE TABLE chunk(id INTEGER PRIMARY KEY AUTOINCREMENT, model INTEGER NOT NULL REFERENCES model,
        owners BLOB NOT NULL, vectors BLOB NOT NULL) STRICT""",
    "chunk_model": "CREATE INDEX chunk_model ON chunk(model)",
    "calibration": """CREATE TABLE calibration(model INTEGER NOT NULL REFERENCES model, kind TEXT NOT NULL,
        facts TEXT NOT NULL CHECK(length(facts) <= 1048576), PRIMARY KEY(model, kind)) STRICT""",
    "correction": """CREATE TABLE correction(id INTEGER PRIMARY KEY, one INTEGER NOT NULL, two INTEGER NOT NULL,
        same INTEGER NOT NULL CHECK(same IN (0, 1))) STRICT""",
    "copy": "CREATE TABLE copy(path TEXT PRIMARY KEY, kind TEXT NOT NULL CHECK(kind IN ('backup', 'dump'))) STRICT",
    "erasing": "CREATE TABLE erasing(identity INTEGER PRIMARY KEY) STRICT",
    "state": "CREATE TABLE state(name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT",
}
STATE = ("current", "epoch", "pending", "origin")  # "copied" in backups: the last number of an identity then
PRAGMAS = {  # of every connection but for the first, which the file keeps
    "journal_mode": "wal",
    "synchronous": 2,  # FULL: an acknowledged enrolment survives a power cut
    "secure_delete": 1,
    "foreign_keys": 1,
    "trusted_schema": 0,
    "cell_size_check": 1,
    "temp_store": 2,  # MEMORY: VACUUM would write a plain copy elsewhere
}

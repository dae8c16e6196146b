CREATE TABLE jobs (
    number BIGSERIAL NOT NULL,
    id VARCHAR(40) NOT NULL,
    status VARCHAR(16) NOT NULL,
    created_at FLOAT NOT NULL,
    started_at FLOAT,
    finished_at FLOAT,
    filename TEXT NOT NULL,
    file VARCHAR(40),
    size BIGINT,
    sha256 VARCHAR(64),
    url TEXT,
    model TEXT NOT NULL,
    options JSON NOT NULL,
    webhook_url TEXT,
    owner VARCHAR(64) NOT NULL,
    idempotency_key VARCHAR(255),
    fingerprint VARCHAR(64) NOT NULL,
    stage VARCHAR(16) NOT NULL,
    done_s FLOAT NOT NULL,
    total_s FLOAT,
    clips_done INTEGER NOT NULL,
    clips_total INTEGER,
    duration FLOAT,
    language VARCHAR(16),
    error JSON,
    failed_spans JSON NOT NULL,
    identity VARCHAR(64),
    pcm TEXT,
    revision INTEGER DEFAULT '0' NOT NULL,
    indexed BOOLEAN DEFAULT false NOT NULL,
    request_id VARCHAR(128),
    traceparent VARCHAR(55),
    audio_tracks JSON,
    PRIMARY KEY (number),
    CONSTRAINT jobs_idempotency UNIQUE (owner, idempotency_key),
    UNIQUE (id)
);

CREATE INDEX jobs_by_status ON jobs (status, number);

CREATE TABLE clips (
    job_number BIGINT NOT NULL,
    start BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    language VARCHAR(16) NOT NULL,
    channel INTEGER DEFAULT '0' NOT NULL,
    deaths INTEGER NOT NULL,
    result BYTEA,
    published BOOLEAN DEFAULT false NOT NULL,
    PRIMARY KEY (job_number, start, "end", language, channel),
    FOREIGN KEY(job_number) REFERENCES jobs (number) ON DELETE CASCADE
);

CREATE TABLE transcripts (
    job_number BIGINT NOT NULL,
    content BYTEA NOT NULL,
    PRIMARY KEY (job_number),
    FOREIGN KEY(job_number) REFERENCES jobs (number) ON DELETE CASCADE
);

CREATE TABLE revisions (
    job_number BIGINT NOT NULL,
    number INTEGER NOT NULL,
    created_at FLOAT NOT NULL,
    changed INTEGER NOT NULL,
    content BYTEA NOT NULL,
    PRIMARY KEY (job_number, number),
    FOREIGN KEY(job_number) REFERENCES jobs (number) ON DELETE CASCADE
);

CREATE TABLE peaks (
    job_number BIGINT NOT NULL,
    content BYTEA NOT NULL,
    PRIMARY KEY (job_number),
    FOREIGN KEY(job_number) REFERENCES jobs (number) ON DELETE CASCADE
);

CREATE TABLE voices (
    job_number BIGINT NOT NULL,
    start BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    content BYTEA NOT NULL,
    PRIMARY KEY (job_number, start, "end"),
    FOREIGN KEY(job_number) REFERENCES jobs (number) ON DELETE CASCADE
);

CREATE TABLE known_speakers (
    job_number BIGINT NOT NULL,
    place INTEGER NOT NULL,
    name TEXT NOT NULL,
    embedding BYTEA NOT NULL,
    model TEXT NOT NULL,
    PRIMARY KEY (job_number, place),
    FOREIGN KEY(job_number) REFERENCES jobs (number) ON DELETE CASCADE
);

CREATE TABLE events (
    job_number BIGINT NOT NULL,
    number INTEGER NOT NULL,
    type VARCHAR(32) NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (job_number, number),
    FOREIGN KEY(job_number) REFERENCES jobs (number) ON DELETE CASCADE
);

CREATE TABLE deliveries (
    id VARCHAR(40) NOT NULL,
    url TEXT NOT NULL,
    body TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    next_at FLOAT NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX deliveries_by_time ON deliveries (next_at);

CREATE TABLE uploads (
    id VARCHAR(40) NOT NULL,
    owner VARCHAR(64) NOT NULL,
    filename TEXT NOT NULL,
    metadata TEXT NOT NULL,
    size BIGINT NOT NULL,
    unchecked_from BIGINT,
    created_at FLOAT NOT NULL,
    expires_at FLOAT NOT NULL,
    job_id VARCHAR(40),
    PRIMARY KEY (id)
);

CREATE INDEX uploads_by_time ON uploads (expires_at);

CREATE TABLE secrets (
    name VARCHAR(40) NOT NULL,
    value BYTEA NOT NULL,
    created_at FLOAT NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE search (
    job_number BIGINT NOT NULL,
    words TSVECTOR NOT NULL,
    PRIMARY KEY (job_number),
    FOREIGN KEY(job_number) REFERENCES jobs (number) ON DELETE CASCADE
);

CREATE INDEX search_by_words ON search USING gin (words) WITH (fastupdate = off);

CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);

INSERT INTO alembic_version VALUES ('0006');

CREATE TABLE IF NOT EXISTS recordings (
    kind TEXT NOT NULL,
    path BLOB NOT NULL,
    inode INTEGER NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    status TEXT NOT NULL,
    digest TEXT NOT NULL,
    key TEXT NOT NULL,
    job TEXT NOT NULL,
    filename TEXT NOT NULL,
    language TEXT NOT NULL,
    sidecar BLOB NOT NULL,
    sidecar_mark TEXT NOT NULL, -- digests, separated by blanks
    PRIMARY KEY (kind, path)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS recordings_by_content ON recordings (inode, size, mtime_ns);

"""Signatures of links: what passes, and that nothing else does."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.jobs.signatures import check_link, has_signature, signed_query
from app.common.errors import LinkRefused

SECRET = bytes(range(32))
JOB = "0123456789abcdef" * 2
PATH = f"/v1/jobs/{JOB}/audio"
EXPIRES = 1_790_000_000
QUERY = signed_query(SECRET, PATH, "format=flac&start=10&end=20.5", EXPIRES)

# Characters of queries, those that are equal to others once they are decoded, and any others.
TEXT = st.text(
    st.sampled_from("&=+%20;.-_~expiressignatureformatflac0123456789ABab") | st.characters(codec="utf-8"),
    max_size=9,
)


def passes(query, *, path=PATH, method="GET", secret=SECRET, now=EXPIRES - 1.0):
    try:
        check_link([bytes(32), secret], method, path, query.encode("latin-1"), now)
    except LinkRefused:
        return False
    return True


def test_what_was_signed_passes():
    for path in (PATH, PATH.replace("audio", "result")):
        for query in ("", "format=vtt", "format=vtt&revision=original", "revision=0"):
            signed = signed_query(SECRET, path, query, EXPIRES)
            assert passes(signed, path=path)
            *parameters, expires, (name, signature) = parse_qsl(signed)
            assert parameters == parse_qsl(query)
            assert expires == ("expires", str(EXPIRES))
            assert (name, len(signature)) == ("signature", 43)


def test_the_signature_stays_the_same_in_later_versions():
    # Links outlive a restart, also one for an update. OpenSSL made this signature.
    signed = signed_query(SECRET, PATH, "", EXPIRES)
    assert signed == "expires=1790000000&signature=i6jMqzKd1m_OzPqpmZe53Kjlt0Ntb0h4boT3skXfuKw"


def test_a_link_passes_until_it_expires():
    assert passes(QUERY, now=0)
    assert passes(QUERY, now=EXPIRES - 0.001)
    for now in (EXPIRES, EXPIRES + 1e9):
        with pytest.raises(LinkRefused, match=r"expired\. Ask for a new link") as caught:
            check_link([SECRET], "GET", PATH, QUERY.encode(), now)
        assert caught.value.param == "expires"


def test_an_altered_link_that_has_expired_is_called_altered():
    with pytest.raises(LinkRefused, match="is not valid") as caught:
        check_link([SECRET], "GET", PATH, QUERY.replace("flac", "ogg").encode(), EXPIRES + 1)
    assert caught.value.param == "signature"


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get", "GET ", ""])
def test_other_methods(method):
    assert not passes(QUERY, method=method)


@pytest.mark.parametrize(
    "path",
    [
        PATH.replace("audio", "result"),
        PATH.replace(JOB, "f" * 32),
        PATH + "/",
        PATH + "\n",
        "/" + PATH,
        PATH.upper(),
        PATH.replace("v1", "v2"),
        "/sub" + PATH,
        f"/v1/jobs/{JOB}",
    ],
)
def test_other_paths(path):
    assert not passes(QUERY, path=path)


@pytest.mark.parametrize(
    "path",
    [
        f"/v1/jobs/{JOB}",
        f"/v1/jobs/{JOB}/events",
        f"/v1/jobs/{JOB}/segments",
        f"/v1/jobs/{JOB}/links",
        f"/v1/jobs/{JOB}/audio/x",
        f"/v1/jobs/{JOB.upper()}/audio",
        f"/v1/jobs/{JOB[1:]}/audio",
        "/v1/jobs/archive/audio",
        "/v1/jobs",
        "/v1/links",
        "/v1/workers",
        "/",
        "",
    ],
)
def test_no_other_path_passes_even_if_it_is_signed(path):
    assert not passes(signed_query(SECRET, path, "", EXPIRES), path=path)


def test_another_secret():
    assert not passes(QUERY, secret=bytes(32))
    assert not passes(QUERY, secret=SECRET[:-1])


def test_each_character_counts():
    for position, this in enumerate(QUERY):
        before, after = QUERY[:position], QUERY[position + 1 :]
        for other in {*"&=+%.-_ ;0alAL\0", "", 2 * this, f"%{ord(this):02X}", chr(ord(this) ^ 1)} - {this}:
            assert not passes(before + other + after)


PARTS = QUERY.split("&")


@given(st.permutations(PARTS).filter(lambda parts: parts != PARTS))
def test_no_other_order_passes(parts):
    assert not passes("&".join(parts))


@given(st.lists(st.sampled_from(PARTS), max_size=8).filter(lambda parts: parts != PARTS))
def test_no_parameter_is_left_out_or_repeated(parts):
    assert not passes("&".join(parts))


@given(st.integers(0, len(QUERY)), st.integers(0, len(QUERY)), TEXT)
def test_no_change_of_the_query_passes(start, end, text):
    changed = QUERY[:start] + text + QUERY[end:]
    if changed != QUERY:
        try:
            check_link([SECRET], "GET", PATH, changed.encode("utf-8"), EXPIRES - 1)
        except LinkRefused:
            return
        raise AssertionError(changed)


@given(st.lists(st.tuples(TEXT, TEXT), max_size=3), st.integers(0, len(PARTS)))
def test_no_added_parameter_passes(added, place):
    parts = PARTS[:place] + [f"{name}={value}" for name, value in added] + PARTS[place:]
    if added:
        with pytest.raises(LinkRefused):
            check_link([SECRET], "GET", PATH, "&".join(parts).encode("utf-8"), EXPIRES - 1)


@pytest.mark.parametrize(
    "query", [b"signature", b"signature=", b"a=b&signature=x", b"%73ignature=x", b"&&signature"]
)
def test_wrong_signatures_are_signatures(query):
    assert has_signature(query)
    assert not passes(query.decode())


@pytest.mark.parametrize(
    "query", [b"", b"signatures=x", b"Signature=x", b"expires=1", b"x=signature", b"\xff=%ff"]
)
def test_queries_without_a_signature(query):
    assert not has_signature(query)

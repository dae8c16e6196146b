"""API keys with names and rights, from the settings and from a file that is read again."""

from pathlib import Path

import pytest

from app.common.owners import Client, KeyRing, parse_key, parse_keys, unnamed_owner


def test_a_key_without_a_name_is_an_operators_and_names_have_the_rights_that_are_written() -> None:
    assert parse_key("secret").client == Client(unnamed_owner(b"secret"), is_operator=True)
    assert parse_key("alice:secret").client == Client("alice", is_operator=False)
    assert parse_key("alice:secret:operator").client == Client("alice", is_operator=True)
    assert "secret" not in repr(parse_key("alice:secret"))


@pytest.mark.parametrize(
    "entry",
    [
        "alice:",
        ":hidden",
        "alice:hidden:boss",
        "link:hidden",
        "a b:hidden",
        "alice:hid den",
        "key-0123456789abcdef:hidden",
        "",
    ],
)
def test_a_wrong_entry_is_refused_and_its_key_is_not_shown(entry: str) -> None:
    with pytest.raises(ValueError, match=r"\. \w") as error:
        parse_key(entry)
    assert "hid" not in str(error.value)


def test_two_names_with_one_key_are_refused() -> None:
    with pytest.raises(ValueError, match="'bob' and 'alice' have the same key"):
        parse_keys(["alice:secret", "bob:secret"])
    assert len(parse_keys(["alice:secret", "alice:other"])) == 2


def test_a_file_is_read_again_and_a_wrong_one_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# of the team\n\nalice:old\n")
    keys = KeyRing(["operators-key"], file)
    assert keys.named() == {unnamed_owner(b"old"): "alice"}
    file.write_text("alice:old\nalice:new\n")
    keys.load()
    assert keys.find(b"old") == keys.find(b"new") == Client("alice", is_operator=False)
    file.write_text("alice:new\nwrong:entry:here\n")
    with pytest.raises(ValueError, match="'wrong'"):
        keys.load()
    assert keys.find(b"old") is not None
    file.write_text("alice:new\n")
    keys.load()
    assert keys.find(b"old") is None
    assert keys.owners() == {"alice", unnamed_owner(b"operators-key")}
    file.write_text("# none\n")
    with pytest.raises(ValueError, match="has no key"):
        KeyRing([], file)

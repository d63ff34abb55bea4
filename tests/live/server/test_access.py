"""Tokens and addresses."""

import pytest

from jobcast.domain.errors import ConfigError
from jobcast.live.server.access import Access, Role, check_place, read_tokens
from tests.shared import refused

TOKEN = "0123456789abcdef"


def written(tmp_path, text, mode=0o600):
    file = tmp_path / "tokens"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_a_token_tells_role_and_user(tmp_path):
    access = read_tokens(written(tmp_path, f"# who\nread ada {TOKEN}\nadvise bob {TOKEN}x\n"))
    assert access.asker(f"Bearer {TOKEN}").role is Role.READ
    assert access.asker(f"bearer {TOKEN}x").user == "bob"
    for wrong in (None, "", "Bearer", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN[:-1]}", "Bearer \u00e9"):
        assert access.asker(wrong) is None


@pytest.mark.parametrize(
    ("text", "mode", "told"),
    [
        (f"read ada {TOKEN}", 0o640, "chmod 600"),
        ("# none\n", 0o600, "holds no token"),
        ("root ada " + TOKEN, 0o600, "line 1"),
        ("read ada secret", 0o600, "line 1"),
    ],
)
def test_a_file_that_cannot_be_trusted_is_refused_without_telling_tokens(tmp_path, text, mode, told):
    line = refused(ConfigError, told, read_tokens, written(tmp_path, text, mode))
    assert TOKEN not in line
    assert "secret" not in line


def test_beyond_this_machine_only_with_tokens_and_tls(tmp_path):
    tokens = read_tokens(written(tmp_path, f"read ada {TOKEN}"))
    for host in ("127.0.0.1", "::1", "localhost"):
        check_place(host, Access(), tls=False)
    check_place("0.0.0.0", tokens, tls=True)
    for access, tls in ((Access(), True), (tokens, False)):
        refused(ConfigError, "--token-file", check_place, "cluster.example.org", access, tls)

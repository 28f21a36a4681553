"""The settings of a person as an archive has them."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core.options import Layer
from memd.core.settings import declared, parse
from memd.portable.settings_text import settings_text

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | TEXT
NAMES = [name for name, _, _ in declared()]


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ('[model]\napi_key = "k"\nauth_token = "t"\n', ["model.api_key", "model.auth_token"]),
        ('[model]\napi_key_file = "/home/a/key"\n', ["model.api_key_file"]),
        ('[model]\nargv = ["ask", "--quietly"]\n', ["model.argv"]),
        ('[model]\nbase_url = "https://anna:word@host/v1"\n', ["model.base_url"]),
        ('base_dir = "~/mine"\n', ["base_dir"]),
        ('auto_memory_directory = "/srv/m"\n', ["auto_memory_directory"]),
        ('api_key = "k"\n[modle]\napi_key = "k"\n', ["api_key", "modle"]),
        ("recall = 3\n", ["recall"]),
    ],
)
def test_keys_paths_and_programs_are_left_out(text: str, left_out: list[str]) -> None:
    """What is private is named and never written, nor is what memd does not know."""
    assert settings_text(tomllib.loads(text)) == ("", tuple(left_out))


def test_all_else_is_there_and_reads_the_same() -> None:
    """Options come in the order of their declaration, in the tables that they are read from."""
    source = (
        'enabled = false\n[model]\nrecall = "a \\"model\\" of \\u00fc\\u007f"\n'
        "[recall]\nlimit = 9\n"
    )
    text, left_out = settings_text(tomllib.loads(source))
    assert left_out == ()
    assert text.index("enabled") < text.index("[recall]") < text.index("[model]")
    one, other = (parse([Layer("x", tomllib.loads(each))]) for each in (source, text))
    assert one == other


@given(st.dictionaries(st.sampled_from(NAMES) | TEXT, VALUES | st.lists(TEXT, max_size=3)))
def test_whatever_is_written_is_toml(values: dict[str, object]) -> None:
    """Any options, right or wrong, become TOML that says nothing else."""
    options: dict[str, object] = {}
    for name, value in values.items():
        table, _, key = name.rpartition(".")
        inner = options.setdefault(table, {}) if table else options
        if isinstance(inner, dict):
            inner[key or name] = value
    text, _ = settings_text(options)
    for table, content in tomllib.loads(text).items():
        known = options[table]
        assert content == known or (isinstance(known, dict) and content.items() <= known.items())

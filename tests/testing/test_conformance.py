"""``memctl conformance``, tried on the client of clients/README.md and on ways to get it wrong."""

import json
import re
import sys
from pathlib import Path

import pytest

from memd.testing import conformance

ROOT = Path(__file__).parents[2]
README = (ROOT / "clients" / "README.md").read_text()
(CLIENT,) = re.findall("```python\n(.*?)```", README, re.DOTALL)


def _run(
    folder: Path, code: str, capsys: pytest.CaptureFixture[str], seconds: float
) -> dict[str, str]:
    """Return the faults that the command finds in a client, by what is at fault."""
    program = folder / "client.py"
    program.write_text(code)
    status = conformance.main(["--json", "--", sys.executable, str(program)], seconds)
    cases = json.loads(capsys.readouterr().out)["cases"]
    faults = {case["case"]: case["fault"] for case in cases if case["fault"]}
    assert status == (1 if faults else 0)
    return faults


def test_the_client_of_the_manual_has_all_that_it_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has at most fifty lines of code, passes every case, and prints what the manual shows."""
    assert sum(bool(line.strip()) for line in CLIENT.splitlines()) <= 50
    program = tmp_path / "search.py"
    program.write_text(CLIENT)
    assert conformance.main(["--", sys.executable, str(program)], 60.0) == 0
    assert README.endswith(capsys.readouterr().out + "```\n")


@pytest.mark.parametrize(
    ("right", "wrong", "case"),
    [
        ('"jsonrpc": "2.0", ', "", "asks as"),
        ("os.getcwd()", "'.'", "asks as"),
        ("json.dumps(request).encode() +", "b'hello' +", "asks as"),
        ('connection.makefile("rb")', "[connection.recv(65536)]", "pieces"),
        ('connection.makefile("rb")', "[connection.recv(1 << 20)]", "two megabytes"),
        ("continue  # a notification", "return message['result']  #", "passes over"),
        ('or message.get("id") != 1', "", "passes over"),
        ('["message"])  # a', '["code"])  # a', "shows an error"),
        ('sys.exit(f"memd does not answer: {error}")', "return", "no daemon"),
        ('raise ConnectionError("memd hung up before it answered")', "return {'hits': []}", "goes"),
        ("import sys\n", "import sys, signal; signal.signal(2, signal.SIG_IGN)\n", "interrupted"),
    ],
)
def test_what_is_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], right: str, wrong: str, case: str
) -> None:
    """Each way to get it wrong fails the case that is about it."""
    assert CLIENT.count(right) == 1
    # Who ignores what it should end at is waited for; the others end before, whatever they find.
    seconds = 1.0 if case == "interrupted" else 10.0
    faults = _run(tmp_path, CLIENT.replace(right, wrong), capsys, seconds)
    assert [name for name in faults if case in name]


def test_a_program_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence has its path and the status is 1."""
    assert conformance.main(["--", "/nowhere/client"]) == 1
    assert "/nowhere/client" in capsys.readouterr().err

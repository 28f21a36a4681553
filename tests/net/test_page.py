"""The page as one browser gets it over HTTP: access, views, forms, and what looking changes."""

import re
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from html import unescape
from urllib.parse import quote, urlencode, urlsplit

import pytest

from tests.net.kit import Home, Project
from tests.net.wire import BIN, SECONDS

pytestmark = pytest.mark.full
PATH = "zebra.md"


class Answer:
    """One answer: status, headers in lower case, text."""

    def __init__(self, data: bytes) -> None:
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split()[1]) if data else 0
        pairs = (line.partition(": ") for line in lines[1:])
        self.headers = {name.lower(): value for name, _, value in pairs}
        self.text = body.decode(errors="replace")


class Page:
    """The page as a process, and a browser with its cookie.

    Requests are written byte by byte: a library would mend headers that a stranger sends.
    """

    def __init__(self, project: Project, *options: str) -> None:
        self.project = project
        self.process = subprocess.Popen(
            [f"{BIN}/memctl", "ui", "--no-open", *options],
            env=project.home.environ,
            cwd=project.cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        self.host = urlsplit(self.address).netloc
        self.root, self.cookie = "", ""

    def close(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=SECONDS)

    def raw(self, data: bytes) -> Answer:
        """Send bytes on a connection of their own; return all that comes."""
        name, _, port = self.host.partition(":")
        received = b""
        with (
            socket.create_connection((name, int(port)), SECONDS) as connection,
            suppress(ConnectionResetError, BrokenPipeError),
        ):
            connection.sendall(data)
            while piece := connection.recv(65_536):
                received += piece
        return Answer(received)

    def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: str = ""
    ) -> Answer:
        """Send a request of the browser; an empty header is left out."""
        named = {"host": self.host, "connection": "close", "cookie": self.cookie}
        if method == "POST":
            named |= {"origin": f"http://{self.host}", "content-length": str(len(body.encode()))}
            named |= {"content-type": "application/x-www-form-urlencoded"}
        named |= headers or {}
        lines = "".join(f"{name}: {value}\r\n" for name, value in named.items() if value)
        return self.raw(f"{method} {path} HTTP/1.1\r\n{lines}\r\n{body}".encode())

    def enter(self) -> Answer:
        """Use the printed address; keep the session's path and cookie."""
        answer = self.request("GET", urlsplit(self.address).path)
        if answer.status == 303:
            self.root = answer.headers["location"]
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer

    def view(self, name: str = "", **about: str) -> Answer:
        """Return a view of the project, as a link leads to it."""
        given = {"cwd": self.project.cwd, **about}
        return self.request("GET", f"{self.root}{name}?{urlencode(given, quote_via=quote)}")

    def submit(self, shown: str, action: str, **fields: str) -> Answer:
        """Send the form of a page that leads to an action, with more fields."""
        (form,) = re.findall(rf'<form [^>]*action="{action}[?"].*?</form>', shown, re.DOTALL)
        address = unescape(re.findall(r'action="([^"]*)"', form)[0])
        hidden = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
        given = {name: unescape(value) for name, value in hidden} | fields
        return self.request("POST", f"{self.root}{address}", body=urlencode(given))


@pytest.fixture(scope="module")
def project(_shared_home: Home) -> Project:
    """Return a project with two memories, for all tests of this file."""
    if _shared_home.process is None:
        _shared_home.start()
    project = _shared_home.project("page")
    project.write(PATH, "The zebra broker listens on 9911.", description="the zebra broker")
    project.write("other.md", "Something else.", description="another memory")
    return project


def _entered(project: Project, *options: str) -> Iterator[Page]:
    with closing(Page(project, *options)) as page:
        assert page.enter().status == 303
        yield page


@pytest.fixture(scope="module")
def reader(project: Project) -> Iterator[Page]:
    """Return a page that only shows."""
    yield from _entered(project)


@pytest.fixture(scope="module")
def writer(project: Project) -> Iterator[Page]:
    """Return a page with forms."""
    yield from _entered(project, "--write")


def test_the_printed_address_works_once(reader: Page) -> None:
    """The first use opened a session; the second, or a guess, opens nothing."""
    path = urlsplit(reader.address).path
    for tried in (path, path[:-1], f"{path}/", "/enter/", "/"):
        assert reader.request("GET", tried, {"cookie": ""}).status == 403
    assert reader.view().status == 200
    assert len(reader.root) > 20  # 128 bits in base64


STRANGERS: dict[str, dict[str, str]] = {
    "no cookie": {"cookie": ""},
    "another cookie": {"cookie": "memd=AAAAAAAAAAAAAAAAAAAAAA"},
    "no host": {"host": ""},
    "a name of this machine": {"host": "localhost:{port}"},
    "a name bound to the address": {"host": "evil.example:{port}"},
    "no port": {"host": "127.0.0.1"},
}


@pytest.mark.parametrize("name", STRANGERS)
def test_who_has_not_entered_gets_403(writer: Page, name: str) -> None:
    """Without path, cookie and exact Host no request gets more than 403, whatever its method."""
    port = writer.host.partition(":")[2]
    headers = {key: value.format(port=port) for key, value in STRANGERS[name].items()}
    for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"):
        for path in (writer.root, f"{writer.root}write?path={PATH}"):
            answer = writer.request(method, path, headers)
            assert answer.status in {400, 403}, (method, path)
            assert "zebra" not in answer.text
    for path in ("/", "/s/AAAAAAAAAAAAAAAAAAAAAA/", "/static/style.css"):
        assert writer.request("GET", path).status == 403


FORMS: dict[str, dict[str, str]] = {
    "no origin": {"origin": ""},
    "another origin": {"origin": "http://evil.example"},
    "an origin by name": {"origin": "http://localhost:{port}"},
    "a null origin": {"origin": "null"},
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_of_another_page_changes_nothing(writer: Page, name: str) -> None:
    """A form needs our Origin and our token."""
    port = writer.host.partition(":")[2]
    headers = {key: value.format(port=port) for key, value in FORMS[name].items()}
    before = writer.project.tree()
    shown = writer.view("confirm-delete", path=PATH).text
    hidden = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', shown)
    fields = {key: unescape(value) for key, value in hidden}
    path = f"{writer.root}delete?" + urlencode({"cwd": writer.project.cwd, "path": PATH})
    assert writer.request("POST", path, headers, urlencode(fields)).status == 403
    fields["form_token"] = "AAAAAAAAAAAAAAAAAAAAAA"  # noqa: S105 - a guess
    assert writer.request("POST", path, body=urlencode(fields)).status == 403
    assert writer.project.tree() == before


VIEWS = ("", "project", "search", "review", "dreams", "notes", "report", "health")


def test_every_view_is_a_page_of_our_own(reader: Page) -> None:
    """Each view answers; no script, style or picture is inline or from elsewhere."""
    for view in (*VIEWS, "memory"):
        answer = reader.view(view, path=PATH, q="zebra")
        assert answer.status == 200, view
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert not re.search(r"<style|<script(?![^>]* src=)| on\w+=| style=", answer.text)
        for address in re.findall(r'(?:src|href|action)="([^"]*)"', answer.text):
            assert not re.match(r"(?i)[a-z]+:|//", unescape(address)), address


def test_a_memory_is_shown_with_its_history(reader: Page) -> None:
    """A memory's heading is its sentence; below are its text and its changes as diffs."""
    text = reader.view("memory", path=PATH).text
    assert "<h1>the zebra broker</h1>" in text
    assert "<p>The zebra broker listens on 9911.</p>" in text
    added = "<ins>The zebra broker listens on 9911.</ins>"
    assert re.search(rf">History<.*{added}.*<code>c\d+</code>", text, re.DOTALL)
    for view in ("search", "project", "report"):
        link = re.findall(rf'<a [^>]*path={PATH}">([^<]*)', reader.view(view, q="zebra").text)
        assert link == ["the zebra broker"], view


def test_markdown_is_rendered(project: Project, reader: Page) -> None:
    """Headings, lists, tables, emphasis and code of a memory are elements of the page."""
    body = "# Ports\n\n- the *broker*: `9911`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\nx < y\n```"
    project.write("drawn.md", body, description="how ports are given")
    text = reader.view("memory", path="drawn.md").text
    shown = ("<h3>Ports</h3>", "<em>broker</em>", "<code>9911</code>", "<td>2</td>", "x &lt; y")
    assert [each for each in shown if each not in text] == []


def test_views_that_hold_nothing_are_not_offered(home: Home, reader: Page) -> None:
    """Search, review, dreams and notes of a project are offered once they hold something."""
    project = home.project()

    def offered() -> set[str]:
        found = re.search(r'class="tabs".*?</nav>', reader.view(cwd=project.cwd).text, re.DOTALL)
        return set(re.findall(r'href="(\w+)', found[0] if found else ""))

    assert offered() == {"project"}
    for path in ("one.md", "two.md"):
        project.write(path, "The broker listens on 9911.", description="the zebra broker")
    assert offered() == {"project", "search"}
    project.call("dream", force=True, wait=True)
    assert offered() == {"project", "search", "dreams"}
    words = "Stop summarizing what you just did at the end of every response, I can read the diff."
    talk = project.conversation().user(words).assistant("ok")
    place = {"session_id": talk.session, "transcript_path": str(talk.path)}
    project.call("extract", **place, wait=True)
    project.call("notes.update", **place, wait=True, force=True)
    assert offered() == {"project", "search", "dreams", "review", "notes"}


def test_the_review_of_all_projects(home: Home, reader: Page) -> None:
    """Without a project the review shows what waits in each of them, with the project's name."""
    project = home.project()
    words = "Please always answer in French from now on, whatever the language of my question is."
    talk = project.conversation().user(words).assistant("ok")
    place = {"session_id": talk.session, "transcript_path": str(talk.path)}
    project.call("extract", **place, wait=True)
    text = unescape(reader.request("GET", f"{reader.root}review").text)
    assert words in text
    assert f"review?cwd={quote(project.cwd, safe='')}" in text


def test_the_first_view_lists_the_projects(project: Project, reader: Page) -> None:
    """Each project is a link with its folder and the number of its memories."""
    other = project.home.project("beside")
    for number in range(3):
        other.write(f"m{number}.md", "One of three.", description=f"number {number}")
    rows = re.findall(r"<tr data-row>.*?</tr>", reader.view().text, re.DOTALL)
    (row,) = [row for row in rows if other.cwd in row]
    assert f"project?cwd={quote(other.cwd, safe='')}" in row
    assert re.search(r'data-label="Memories">3<', row)


def test_a_page_that_is_not_there_says_so(reader: Page) -> None:
    """An unknown memory or view is a page with a sentence, not a fault."""
    assert reader.view("memory", path="none.md").status in {200, 404}
    assert reader.view("no-such-view").status == 404


HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(1)> [link](javascript:alert(1)) "
    "![picture](http://evil.example/x.png) <a href='http://evil.example'>x</a> \u202egnol\u200b"
)


def test_the_text_of_a_memory_never_acts(project: Project, reader: Page) -> None:
    """HTML, links and pictures of a memory are text, and hidden characters are spelled out."""
    head = f"---\nname: evil\ndescription: {HOSTILE[:25]}\ntype: user\n---\n"
    project.put("evil.md", f"{head}\n{HOSTILE}\n")
    try:
        for view in ("memory", "project", "search"):
            text = reader.view(view, path="evil.md", q="alert").text
            assert "<script>alert" not in text
            assert "<img" not in text
            assert not re.search(r'href="[^"]*(?:javascript:|evil\.example)', text)
            assert not set(text) & {"\u202e", "\u200b"}
    finally:
        (project.memory / "evil.md").unlink()


def _all_state(project: Project) -> object:
    """Return all that looking could change."""
    methods = ("memory.history", "job.list", "notes.list", "agent.list", "review.list")
    found = [project.call(method) for method in methods]
    status = project.home.call("status")
    kept = {name: status[name] for name in ("sessions", "jobs", "suggestions")}
    report = project.home.call("report")
    uses = {name: report[name] for name in ("surfaced", "most")}
    return found, kept, uses, project.tree()


def test_looking_changes_nothing(home: Home, reader: Page) -> None:
    """After all views no use is counted, nothing is marked, no session or job has begun."""
    project = home.project()
    project.write(PATH, "The zebra broker listens on 9911.", description="the zebra broker")
    before = _all_state(project)
    for view in (*VIEWS, "memory"):
        assert reader.view(view, cwd=project.cwd, path=PATH, q="zebra broker").status == 200
    assert _all_state(project) == before


ACTIONS = ("write", "delete", "undo", "decide")


def test_without_write_there_is_no_way_to_write(project: Project, reader: Page) -> None:
    """Without --write no page has a form but Quit, and no route changes anything."""
    token = re.findall(r'name="form_token" value="([^"]*)"', reader.view().text)[0]
    before = project.tree()
    for view in (*VIEWS, "memory"):
        forms = re.findall(r'<form [^>]*method="post"[^>]*', reader.view(view, path=PATH).text)
        assert all('action="quit"' in form for form in forms), view
    for action in (*ACTIONS, "edit", "confirm-delete"):
        path = f"{reader.root}{action}?" + urlencode({"cwd": project.cwd, "path": PATH})
        body = urlencode({"form_token": token, "content": "x", "request_id": "r"})
        assert reader.request("POST", path, body=body).status in {404, 405}, action
    assert reader.view("edit", path=PATH).status == 404
    assert project.tree() == before


def test_a_memory_is_edited_deleted_and_brought_back(project: Project, writer: Page) -> None:
    """Each form is one change, made against the text that was shown."""
    project.write("mine.md", "One.", description="mine")
    shown = writer.view("edit", path="mine.md").text
    new = project.read("mine.md").replace("One.", "Two.")
    assert writer.submit(shown, "write", content=new.replace("\n", "\r\n")).status == 303
    assert project.read("mine.md").endswith("Two.\n")
    shown = writer.view("confirm-delete", path="mine.md").text
    assert writer.submit(shown, "delete").status == 303
    assert "mine.md" not in project.tree()
    newest = project.call("memory.history", limit=1)["changes"][0]["id"]
    shown = writer.view("confirm-undo", change=newest).text
    assert writer.submit(shown, "undo").status == 303
    assert project.read("mine.md").endswith("Two.\n")


def test_a_conflict_keeps_the_words_of_the_person(project: Project, writer: Page) -> None:
    """What changed since it was shown is not overwritten, and the person's text is on the page."""
    written = project.write("both.md", "One.", description="both")
    shown = writer.view("edit", path="both.md").text
    project.write("both.md", "Two, by an assistant.", base_hash=written["hash"])
    mine = project.read("both.md").replace("Two, by an assistant.", "Three, by me.")
    answer = writer.submit(shown, "write", content=mine)
    assert answer.status == 409
    assert "Three, by me." in answer.text
    assert "Two, by an assistant." in project.read("both.md")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_on_a_signal(project: Project, number: int) -> None:
    """Ctrl-C and SIGTERM end the page with status 0, and nothing listens any more."""
    with closing(Page(project)) as page:
        page.enter()
        page.process.send_signal(number)
        assert page.process.wait(SECONDS) == 0
        with pytest.raises(OSError, match="refused"):
            page.view()


def test_it_ends_on_its_button(project: Project) -> None:
    """Quit ends the page."""
    with closing(Page(project)) as page:
        page.enter()
        token = re.findall(r'name="form_token" value="([^"]*)"', page.view().text)[0]
        body = urlencode({"form_token": token})
        assert page.request("POST", f"{page.root}quit", body=body).status == 200
        assert page.process.wait(SECONDS) == 0


def test_a_port_that_is_taken_is_named(project: Project, reader: Page) -> None:
    """A page does not begin at a port that another program has."""
    port = reader.host.partition(":")[2]
    done = project.memctl("ui", "--no-open", "--port", port)
    assert (done.returncode, done.stdout) == (1, "")
    assert port in done.stderr


def test_only_this_machine_is_served(reader: Page) -> None:
    """The page listens on 127.0.0.1, and no other address of this machine answers."""
    assert reader.host.startswith("127.0.0.1:")
    for address in ("127.0.0.2", "::1"):
        kind = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(kind) as probe:
            assert probe.connect_ex((address, int(reader.host.partition(":")[2]))) != 0

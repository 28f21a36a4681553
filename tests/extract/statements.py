"""Plain statements in ten languages, and what becomes of each: a smoke test, no yardstick.

What the extractor reaches is measured on talk of strangers (benchmarks/extract.py).
"""

from collections.abc import Container

from memd.base.text import said_line
from memd.extract.candidates import Candidate
from memd.extract.merge import stated
from memd.store import memory
from memd.store.memory import StatementMemory

SAVED = (
    ("Remember that our staging database is on port 5433.", "project"),
    ("From now on answer in German.", "feedback"),
    ("Always run the linter before you commit.", "feedback"),
    ("Never push to main without asking me.", "feedback"),
    ("Bitte ab jetzt immer auf Deutsch antworten.", "feedback"),
    ("以后提交信息一律用英文写", "feedback"),
    ("Recuerda que desplegamos los martes.", "project"),
    ("Ne modifie jamais les fichiers générés.", "feedback"),
    ("Sempre use aspas simples.", "feedback"),
    ("Ricorda che il server di staging è a Milano.", "project"),
    ("Запомни: деплой только через Jenkins.", "project"),
    ("今後はコメントを日本語で書いてください", "feedback"),
    ("앞으로 커밋 메시지는 항상 영어로 작성해", "feedback"),
)
# Somebody else's words, as they are pasted without a quotation mark: suggested at most.
SPOKEN_BY_ANOTHER = (
    "Bob wrote: always deploy without asking",
    "assistant: from now on answer in French",
    "\u25cf Always sign your commits.",
    "// never touch the generated files",
    "12 | always sign your commits",
    "Er sagt \u00abimmer auf Deutsch antworten\u00bb dazu",
)
CONTENTLESS = (
    "Remember this.",
    "Please remember that!",
    "Remember this for all future sessions.",
    "Always remember this rule for next time, please.",
    "Merk dir das für alle künftigen Sitzungen.",
)
# What is said, and what of it becomes the memory.
WITHOUT_REQUEST = (
    ("Remember that we deploy on Tuesdays.", "We deploy on Tuesdays."),
    ("Remember my name is Dana Smith.", "My name is Dana Smith."),
    ("I'm allergic to peanuts, remember that.", "I'm allergic to peanuts."),
    ("I live in Oslo, please don't forget it!", "I live in Oslo!"),
    ("Ich bin Vegetarier, merk dir das.", "Ich bin Vegetarier."),
    ("我对花生过敏，记住了。", "我对花生过敏。"),
    ("Remember this.", "Remember this."),
    ("Remember when we shipped it.", "Remember when we shipped it."),
)
NOT_KEPT = (
    *CONTENTLESS,
    "fix the login button",
    "why is it never loading?",
    "The user should always see the total.",
    "never do that again",
    "> Always sign your commits.",
    "<note>Always sign your commits.</note>",
    "do I always have to restart it?",
    "Die Tests laufen immer noch nicht",
    "為什麼一直報錯？",
    "¿Siempre hay que reiniciar?",
    "Добавь тест для этой функции",
)


def word(candidate: Candidate, taken: Container[str] = ()) -> StatementMemory:
    """Return the memory of a candidate."""
    quotation = said_line(" ".join(candidate.text.split()), candidate.at)
    statement, kind = stated(candidate), candidate.type
    return memory.of_statement(statement, kind, quotation, taken, session="s", modified="m")

"""A prompt, analysed once."""

from memd.search.query import parse, synonyms
from memd.text.words import list_text, words


def test_words_keep_their_order_and_count() -> None:
    """Distinct words come in the prompt's order, common ones count less, neighbours are pairs."""
    query = parse("quorum lease, then work on the quorum lease")
    assert dict(query.factors) == {"quorum": 1.0, "leas": 1.0, "work": 0.6}
    assert query.pairs == (("quorum", "leas"), ("leas", "work"), ("work", "quorum"))


def test_names_stand_inside_a_prompt() -> None:
    """A capital letter names somebody unless it only opens the prompt; acronyms are no names."""
    assert parse("Where does Priya keep the API keys of Tomas?").names == {"priya", "toma"}
    assert parse("The").names == frozenset()


def test_words_of_a_group_stand_for_each_other() -> None:
    """A word's synonyms come in the form in which ``words`` gives them, itself not among them."""
    results = synonyms(words("deploy"))["deploy"]
    assert "releas" in results
    assert "deploy" not in results


def test_narrower_words_stand_for_the_broader_one_only() -> None:
    """Who asks for pets is told of the dog; who asks for the dog is not told of the cat."""
    assert "dog" in synonyms(["pet"])["pet"]
    assert "cat" not in synonyms(["dog"]).get("dog", ())


def test_a_phrase_has_another_name() -> None:
    """The words of a phrase share what stands for it, in another language too."""
    results = synonyms(words("数据库"))
    assert all("databas" in results[word] for word in words("数据库"))
    assert {"数据", "据库"} <= set(synonyms(["databas"])["databas"])


def test_what_the_prompt_says_itself_is_not_repeated() -> None:
    """A synonym that stands in the prompt counts there already."""
    assert "releas" not in synonyms(words("deploy the release"))["deploy"]


def test_unknown_words_have_none() -> None:
    """A word that the table does not know is left alone."""
    assert synonyms(["nosuchword"]) == {}


def test_every_line_says_something() -> None:
    """No phrase of the table is lost to the list of stop words."""
    text = list_text("synonyms.txt")
    items = [item for line in text.splitlines() for item in line.replace(">", "").split()]
    assert [item for item in items if not words(item.replace("_", " "))] == []

"""How many of the memories that wait for a commit have a word."""

from hypothesis import given
from hypothesis import strategies as st

from memd.search.index import Index
from tests.search.test_index import entry


@given(
    st.lists(
        st.one_of(
            st.tuples(
                st.just("add"),
                st.sampled_from("abc"),
                st.sampled_from(("stone", "river stone", "river")),
            ),
            st.tuples(st.just("remove"), st.sampled_from("abc"), st.just("")),
            st.tuples(st.just("ask"), st.just(""), st.just("")),
        ),
        max_size=12,
    )
)
def test_words_are_counted_once_for_each_memory(steps: list[tuple[str, str, str]]) -> None:
    """Whatever came, went and was asked for between, a word has as many holders as there are."""
    index = Index(None)
    present: dict[str, str] = {}
    for step, name, text in steps:
        if step == "add":
            index.update([entry(f"{name}.md", text)])
            present[name] = text
        elif step == "remove":
            index.remove([f"{name}.md"])
            present.pop(name, None)
        else:
            for word in ("stone", "river"):
                wanted = sum(word in text.split() for text in present.values())
                assert index.holders(word) == wanted

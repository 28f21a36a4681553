"""Statements found by their words."""

from memd.extract.inverted_index import InvertedIndex
from memd.extract.sameness import said


def test_the_same_words_are_always_met() -> None:
    """However many share every word but one, what was said before is found again."""
    shelf: InvertedIndex[int] = InvertedIndex()
    for number in range(2000):
        shelf.put(said(f"pipeline task {number} reads common tables"), number)
    shelf.put(said("pipeline task reads common tables"), -1)
    for number in range(2000, 4000):
        shelf.put(said(f"pipeline task {number} reads common tables"), number)
    assert shelf.plausible(said("common tables: pipeline task reads"))[0] == -1
    assert shelf.plausible(said("pipeline task 77 reads common tables"))[0] == 77


def test_many_known_statements_cost_no_more_than_few() -> None:
    """What is handed out to compare stays bounded for each statement."""
    shelf: InvertedIndex[int] = InvertedIndex()
    for number in range(1000):
        assert len(shelf.plausible(said(f"common words {number}"))) <= 8
        shelf.put(said(f"common words {number}"), number)
    assert shelf.compared <= 8 * 1000

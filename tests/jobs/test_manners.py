"""Whether somebody waits for a prompt."""

import threading

from memd.jobs.manners import Manners


def test_background_work_waits_for_the_last_prompt() -> None:
    """While prompts are in flight a thread that gives way waits; with the last one it goes on."""
    manners = Manners()
    manners.give_way()
    asked, went = threading.Event(), threading.Event()

    def work() -> None:
        asked.set()
        while not went.is_set():
            manners.give_way()
            if not manners._prompts:
                went.set()

    with manners.prompt():
        with manners.prompt():
            thread = threading.Thread(target=work)
            thread.start()
            asked.wait()
        assert not went.is_set()
    assert went.wait(10)
    thread.join()


def test_prompts_without_end_do_not_stop_the_background() -> None:
    """One wait is short, however long a prompt takes."""
    manners = Manners()
    with manners.prompt():
        manners.give_way()
        manners.give_way()


def test_a_prompt_that_waits_for_others_is_left_out() -> None:
    """While it waits for a model the background goes on; outside of prompts nothing changes."""
    manners = Manners()
    with manners.aside():
        assert manners._prompts == 0
    with manners.prompt():
        with manners.aside():
            assert manners._quiet.is_set()
        assert not manners._quiet.is_set()
    assert manners._quiet.is_set()

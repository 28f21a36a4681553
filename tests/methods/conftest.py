"""A daemon in this process, and a client on its socket."""

from tests.support.caller import caller as caller
from tests.support.caller import clock as clock
from tests.support.caller import home as home

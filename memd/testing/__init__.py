"""Tools for tests against memd, for this project's tests and for those of its users."""

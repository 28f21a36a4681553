"""What a test against memd needs, for this project's tests and for its users'."""

"""Language models: the port that rooms ask, and the one door to the SDK behind it."""

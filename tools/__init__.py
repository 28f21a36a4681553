"""What keeps the repository: sizes and generated documents. Not part of what is installed."""

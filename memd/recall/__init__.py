"""prefetch: the few memories that matter for this prompt."""

"""dream: consolidation across sessions."""

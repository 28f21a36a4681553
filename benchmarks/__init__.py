"""Speed and quality, measured as ratios against a floor or a peer in the same run."""

"""What several rewards share."""

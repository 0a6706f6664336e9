"""What two English texts are compared by: one interface for every dimension of consistency (paper A §3)."""

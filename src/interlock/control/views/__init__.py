"""What is only read, for display: nothing here decides or writes."""

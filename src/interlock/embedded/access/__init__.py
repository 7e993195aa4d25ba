"""Who may do what: tokens, browser sessions, callback addresses."""

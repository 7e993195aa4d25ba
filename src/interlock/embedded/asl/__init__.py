"""State machines: the interpreter of the States Language, and durable executions that it moves."""

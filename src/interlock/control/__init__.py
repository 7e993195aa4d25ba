"""The six functions: stream-router, orchestrator, sla-monitor, watchdog, event-sink, alert-dispatcher.

Each loads facts, decides (by `interlock.decide`), commits. They know the ports and nothing of SQLite or DynamoDB; the
embedded process and the Lambdas call the same functions. `lifecycle.asl.json` is the one definition of the lifecycle.
"""

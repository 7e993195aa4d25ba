"""AWS in one process on virtual time: what the Terraform module deploys, wired as it says, around the real Lambdas.

DynamoDB, SQS and Scheduler are moto's; Step Functions runs the shipped state machine on the project's own interpreter
(compared with moto's in `tests/conformance`) or on moto's; everything between them (streams, mappings, filters, rules,
schedules, invocations) is here. What AWS refuses and moto does not is refused, each rule with its source.
"""

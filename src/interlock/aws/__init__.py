"""The AWS runtime: the ports on DynamoDB, Step Functions, EventBridge, Scheduler and SQS, and six thin Lambdas.

What is decided is decided in `control` and `decide`; here services are called and their errors translated.
"""

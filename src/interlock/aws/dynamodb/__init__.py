"""The store port on DynamoDB, and the records of its streams."""

"""DAG runs of Airflow: `target` follows them, `api` speaks with the server, `log` reads what the tasks wrote."""

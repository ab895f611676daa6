"""What happened, for tools of others: spans and metrics of OpenTelemetry, CloudEvents."""

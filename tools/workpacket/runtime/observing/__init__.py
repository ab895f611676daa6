"""Run events for other tools: OpenTelemetry spans and metrics, CloudEvents."""

"""A gallery as a service: an HTTP API and one page, on the loopback address."""

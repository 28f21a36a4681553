"""Count what memd-team does, and show it as OpenMetrics text. Used on the event loop alone."""

from collections import Counter

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_BOUNDS = (0.005, 0.025, 0.1, 0.25, 1.0, 5.0)  # seconds


class Metrics:
    """Requests by route and status, their seconds, and bytes in both directions."""

    def __init__(self) -> None:
        self.running = 0  # requests that are being answered
        self._requests: Counter[tuple[str, int]] = Counter()  # by route and status
        self._within: Counter[float] = Counter()  # requests that took no longer than each bound
        self._seconds = 0.0  # of all requests together
        self._received = self._sent = 0  # bytes

    def count(self, route: str, status: int, seconds: float, received: int, sent: int) -> None:
        """Count a request that was answered."""
        self._requests[route, status] += 1
        self._seconds += seconds
        self._within.update(bound for bound in _BOUNDS if seconds <= bound)
        self._received += received
        self._sent += sent

    def text(self) -> str:
        """Return all counts; called in a thread, so what is counted is copied first."""
        total = self._requests.total()
        lines = ["# TYPE memd_team_requests counter"]
        lines += [
            f'memd_team_requests_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self._requests.copy().items())
        ]
        lines.append("# TYPE memd_team_request_seconds histogram")
        bounds = [(str(bound), self._within[bound]) for bound in _BOUNDS]
        lines += [
            f'memd_team_request_seconds_bucket{{le="{bound}"}} {count}'
            for bound, count in (*bounds, ("+Inf", total))
        ]
        lines.append(f"memd_team_request_seconds_sum {self._seconds:.6f}")
        lines.append(f"memd_team_request_seconds_count {total}")
        for name, value in {"received": self._received, "sent": self._sent}.items():
            lines.append(f"# TYPE memd_team_{name}_bytes counter")
            lines.append(f"memd_team_{name}_bytes_total {value}")
        lines += ["# TYPE memd_team_running gauge", f"memd_team_running {self.running}"]
        return "\n".join((*lines, "# EOF", ""))

"""Reading what ``/metrics`` says."""

from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from rest.memory import forget_everything

TOKEN = "scrape-token"

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scrape() -> Samples:
    """Ask with the token; return every sample by its name and labels. The settings must name ``TOKEN``."""
    forget_everything()
    response = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert response.status_code == 200
    return samples_of(response.content.decode())


def samples_of(text: str) -> Samples:
    """Parse the text format."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    """Return one sample, 0 where it is not there yet."""
    return samples.get((name, tuple(sorted(labels.items()))), 0.0)

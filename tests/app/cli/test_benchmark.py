"""``multicause benchmark``: times of models beside those of matrix products."""

import json

from multicause.app.cli.output import Output
from multicause.app.experiments.timing import Timing
from tests.app.cli.calls import call, result_of


def test_benchmark_times_an_iteration_beside_matrix_products():
    found = result_of("benchmark", "--model", "kmeans", "--rows", 50, "--features", 4, "--components", 2)
    assert found["models"][0]["model"] == "kmeans"
    assert found["products_milliseconds"] > 0
    assert call("benchmark", "--model", "magic").exit_code == 2


def test_benchmark_tells_each_result_when_it_is_there_and_goes_on_after_a_failure(monkeypatch):
    told = []

    def time_model(name, X, n_components, products):
        if name == "KMeans":
            raise ValueError("No means.")
        return Timing(name, 1.0 + len(told), 2.0)

    monkeypatch.setattr("multicause.app.experiments.timing.time_model", time_model)
    monkeypatch.setattr("multicause.app.experiments.timing.time_products", lambda *_: 0.5)
    say = Output.say
    monkeypatch.setattr(Output, "say", lambda self, text, **style: (told.append(text), say(self, text, **style)))
    words = ["benchmark", "--model", "pca", "--model", "kmeans", "--model", "ica", "--rows", 10]
    run = call(*words)
    assert run.exit_code == 1
    assert told[1:] == ["pca: 2.000 ms, 2.0 times the products", "kmeans: failed: No means.", told[-1]]
    assert told[-1].startswith("ica: 4.000 ms")
    assert [one.get("error") for one in json.loads(call(*words, "--json").stdout)["models"]] == [
        None,
        "No means.",
        None,
    ]

"""Messages of estimators on the command line: they name its options, and only remedies that the model has."""

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import multicause
from multicause import EnergyComponents, IndependentComponents, MaximalCauses
from multicause.app.cli.message_translation import READING, errors_in_options, in_options, reading_in_options
from multicause.app.cli.output import Output
from multicause.datasets import make_bars
from multicause.datasets.reading import Reading
from multicause.outcomes import Outcome
from tests.app.cli.calls import call, result_of


@pytest.mark.parametrize(
    ("model", "text", "told"),
    [
        (
            MaximalCauses(),
            "outcome_='max_iter': Ended. (1) Raise max_iter; (2) raise tol if the last values of lower_bounds_ differ.",
            "Ended. (1) Raise --iterations; (2) raise tol (--set tol=...) if the last bounds in history.csv differ.",
        ),
        (
            MaximalCauses(),
            "(1) Lower n_components; (2) use annealing='auto'; (3) raise n_init; (4) change random_state.",
            "(1) Lower --components; (2) use --set annealing=auto; (3) raise --starts; (4) change --seed.",
        ),
        (
            MaximalCauses(),
            "Truncated allows max_active=5, more than n_components=3. Use at most 3, or posterior='exact'.",
            "Truncated allows max_active=5, more than --components 3. Use at most 3, or --posterior exact.",
        ),
        (
            MaximalCauses(),
            "The 'n_components' parameter of MaximalCauses must be an int. Gaussian noise and a posterior are needed.",
            "The --components parameter of MaximalCauses must be an int. Gaussian noise and a posterior are needed.",
        ),
        (
            MaximalCauses(),
            "/X/run.X/max_iter_3 belongs to other data: X, its dtype or the weights differ. Start over without resume.",
            "/X/run.X/max_iter_3 belongs to other data: the data, its dtype or the weights differ. "
            "Start over without --resume.",
        ),
        (
            EnergyComponents(),
            "Columns of X do not vary. Use whiten='pca' and n_whitened=91, or whiten=None.",
            "Columns of the data do not vary. Use --set whiten=pca and --set n_whitened=91, or --set whiten=null.",
        ),
        (
            EnergyComponents(),
            "Lower batch_size, or raise it with engine=Local(memory_budget=...). Use float64 data.",
            "Lower batch_size (--set batch_size=...), or raise it with --memory. Use --dtype float64.",
        ),
    ],
)
def test_settings_are_options(model, text, told):
    assert in_options(text, model.get_params(deep=False)) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("use separator=';' and decimal=','.", "use --sep ';' and --decimal ','."),
        ("Say which with header=True or header=False.", "Say which with --header or --no-header."),
        ("leave columns out with drop=('a', 'b c'), or", "leave columns out with --drop 'a,b c', or"),
        ("leave the column out with drop=('b',).", "leave the column out with --drop b."),
        ("decimal must be a comma or a point; got ';'.", "--decimal must be a comma or a point; got ';'."),
        ("index='none' keeps it; index=0 does not.", "--index none keeps it; --index 0 does not."),
        ("set image_shape=... or patches=(10, 10).", "set --image-shape or --patches 10x10."),
        (
            "Choose one with array='NAME'; there is no 'index=3'.",
            "Choose one with --array NAME; there is no 'index=3'.",
        ),
        ("of columns my index=x, the decimal mark", "of columns my index=x, the decimal mark"),
        ("model.impute(X) fills them in.", "'multicause reconstruct --impute' fills them in."),
    ],
)
def test_settings_of_reading_are_options(text, told):
    assert reading_in_options(text) == told


def test_settings_of_reading_exist():
    assert {*READING} <= {field.name for field in fields(Reading)}


def test_library_names_no_options():
    """Messages of the library name its parameters, and the command line translates them."""
    source = Path(multicause.__file__).parent
    library = [path for path in source.rglob("*.py") if path.relative_to(source).parts[0] != "app"]
    assert [path for path in library if re.search(r"[^\w-]--[a-z]", path.read_text())] == []


def test_what_an_outcome_means_is_said_in_the_same_words():
    """So that a report recognizes a warning of the command line."""
    for model in (MaximalCauses(), EnergyComponents()):
        model.components_, model.drift_ = np.eye(2), 0.5
        for outcome in set(Outcome) - {Outcome.CONVERGED, Outcome.STOPPED}:
            meaning = model.explain_outcome(outcome).meaning
            assert in_options(meaning, model.get_params(deep=False)) == meaning


def test_errors_keep_their_type_and_speak_of_options():
    model = IndependentComponents(5)
    message = "features: --components 5, but the data has 2 features. Lower --components"
    with pytest.raises(ValueError, match=message), errors_in_options(model):
        model.fit(np.eye(2))
    with pytest.raises(OSError, match="2"), errors_in_options(model):
        raise OSError(2, "max_iter")


def test_warnings_of_a_fit_name_options_that_the_model_has(tmp_path):
    np.save(tmp_path / "rows.npy", make_bars(40, size=3, noise="gaussian", random_state=0).data)
    for name in ("factors", "ica", "mixture"):
        words = ["fit", tmp_path / "rows.npy", "--model", name, "--components", 2, "--iterations", 1]
        run = call(*words, "--out", tmp_path / name)
        assert run.exit_code == 0, run.output
        told = " ".join(run.stdout.split())
        assert "Warning: Learning had not converged when it ended. (1) Raise --iterations; (2) raise tol (--set" in told
        assert "annealing" not in told
        page = (tmp_path / name / "report.html").read_text()
        assert page.count("<p>Learning had not converged when it ended") == 1
        assert "Raise --iterations" in page
    found = result_of(*words, "--out", tmp_path / "again")
    assert found["outcome"] == "max_iter"
    assert found["warnings"][0].startswith("Learning had not converged")
    run = call("fit", tmp_path / "rows.npy", "--model", "ica", "--components", 30, "--out", tmp_path / "large")
    assert run.exit_code == 2
    assert "--components 30, but the data has 9 features. Lower --components" in run.stderr


def test_tables_show_brackets_and_have_no_empty_header(capsys):
    output = Output(as_json=False)
    output.table("runs [both]", ["", "run[old]"], [["R² [0, 1]", "0.5"]])
    text = capsys.readouterr().out
    assert all(word in text for word in ("runs [both]", "run[old]", "R² [0, 1]"))
    output.table("one run", ["", ""], [["outcome", "converged"]])
    assert len(capsys.readouterr().out.strip().splitlines()) == 4  # title, two rules and one line

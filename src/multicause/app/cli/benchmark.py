"""Command ``multicause benchmark``: time one iteration of each model."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from multicause.app.cli.models import MODELS
from multicause.app.cli.options import Device, Json, Verbose
from multicause.app.cli.output import FAILED, command, describe


def benchmark(
    model: Annotated[
        list[str] | None, typer.Option(help="Model to time; by default all. May be repeated.", show_default=False)
    ] = None,
    rows: Annotated[int, typer.Option(help="Number of rows.", min=10)] = 2000,
    features: Annotated[int, typer.Option(help="Number of features.", min=2)] = 100,
    components: Annotated[int, typer.Option(help="Number of causes.", min=1)] = 10,
    dtype: Annotated[str, typer.Option(help="float64 or float32.")] = "float64",
    device: Device = "auto",
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Time one iteration of each model on this machine, relative to the two matrix products that it needs at least.

    Compilation is not counted, but takes up to half a minute for a model. Use an idle machine. A model without
    iterations (pca) is timed as a whole. Comparisons with other libraries are in the source tree: make benchmark.

    Examples:
      multicause benchmark

      multicause benchmark --model maximal --model ica --rows 20000 --json
    """
    with command(json, verbose) as output:
        unknown = [name for name in model or () if name not in MODELS]
        if unknown:
            raise ValueError(f"Unknown model {unknown[0]!r}. Known: {', '.join(MODELS)}.")
        if dtype not in ("float32", "float64"):
            raise ValueError(f"dtype must be float32 or float64; got {dtype!r}.")
        from multicause.app.experiments.timing import example_data, time_model, time_products
        from multicause.runtime.devices import use_device

        backend = use_device(device)
        X = example_data(rows, features, components, dtype)
        products = time_products(X, components)
        output.say(f"{rows} rows, {features} features, {components} components, {dtype}, on {backend}.")
        lines: list[list[str]] = []
        results: list[dict[str, Any]] = []
        for name in model or MODELS:
            try:
                with output.working(f"{name}: compiling and timing"):
                    timing = time_model(MODELS[name], X, components, products)
            except Exception as error:  # one model that fails must not lose the results of the others
                lines.append([name, "failed", ""])
                results.append({"model": name, "error": describe(error)})
                output.say(f"{name}: failed: {describe(error)}", style="yellow")
            else:
                known = math.isfinite(timing.iteration)
                numbers = [f"{timing.iteration:.3f}", f"{timing.ratio:.1f}"] if known else ["not measurable", ""]
                lines.append([name, *numbers])
                results.append({"model": name, "milliseconds": _known(timing.iteration), "ratio": _known(timing.ratio)})
                text = f"{numbers[0]} ms, {numbers[1]} times the products" if known else "too short to measure"
                output.say(f"{name}: {text}", style="dim")
        title = f"One iteration; the two matrix products take {products:.3f} ms"
        output.table(title, ["model", "milliseconds", "times the products"], lines)
        output.result(device=backend, dtype=dtype, products_milliseconds=products, models=results)
        if any("error" in one for one in results):
            raise typer.Exit(FAILED)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None

"""Help of ``multicause fit``, whose names of parts are written out so that it need not import them."""

import re
from typing import get_type_hints

import pytest

from multicause import noises, posteriors
from multicause.app.cli.fit import fit


@pytest.mark.parametrize(
    ("option", "names", "end"), [("noise", noises.NAMES, ", if "), ("posterior", posteriors.NAMES, "; by default")]
)
def test_help_lists_all_names_of_parts(option, names, end):
    text = get_type_hints(fit, include_extras=True)[option].__metadata__[0].help
    listed = text.partition(end)[0]
    assert re.split(", | or ", listed) == list(names)

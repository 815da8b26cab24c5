"""Pictures are drawn off screen: what the user has open in Matplotlib stays as it is."""

from __future__ import annotations

import pytest

import linkwise as lw
from linkwise.tour.visit import picture

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture
def at_work():
    """A user whose figures are drawn as PDF, with one of them open."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    before = matplotlib.get_backend()
    pyplot.switch_backend("pdf")
    figure = pyplot.figure()
    yield lambda: (matplotlib.get_backend(), pyplot.get_fignums(), pyplot.gcf() is figure)
    pyplot.close(figure)
    pyplot.switch_backend(before)


@pytest.mark.parametrize("form", ["svg", "png"])
def test_a_picture_leaves_matplotlib_as_it_was(form, at_work):
    before, mech = at_work(), lw.models.pendulum()
    result = picture(
        lambda theme: lw.plot.mass_matrix(mech, [0.3], theme=theme)[0].figure, "", form
    )
    assert result.light.startswith("data:image/") and result.light != result.dark
    assert at_work() == before


def test_figures_outside_are_those_of_pyplot(at_work):
    """Off screen ends with the picture."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    picture(lambda theme: lw.plot.skeleton(lw.models.pendulum(), [0.3], theme=theme).figure, "")
    figure = lw.plot.skeleton(lw.models.pendulum(), [0.3]).figure
    assert figure.number in pyplot.get_fignums()
    pyplot.close(figure)

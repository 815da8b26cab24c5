"""The page, piece by piece."""

from __future__ import annotations

import pytest

from linkwise.tour.page import Block, Picture, Section, Table, page


def written(*blocks: Block) -> str:
    return page("robot", "What is seen.", {}, [Section("One: two", "one", list(blocks))], [])


@pytest.mark.parametrize("name", ["$", "$x_1", r"$\frac{a}{b}", "$$"])
def test_a_name_with_a_dollar_is_a_name(name):
    text = written(Table(("body",), ((name,),)))
    assert f"<td>{name}</td>" in text
    assert "<math" not in text


def test_a_column_of_times_is_aligned_as_numbers():
    text = written(Table(("is", "takes"), (("x", "2.0 µs"),)))
    assert "<td class=number>2.0 µs</td>" in text


@pytest.mark.parametrize(("size", "wide"), [((900, 340), True), ((614, 500), False)])
def test_pictures_that_are_scrolled_on_a_narrow_page_say_so(size, wide):
    text = written(Picture("data:,a", "data:,b", "A picture.", *size))
    assert ("Scroll this picture sideways" in text) == wide
    assert ('<div class="sideways"' in text) == wide

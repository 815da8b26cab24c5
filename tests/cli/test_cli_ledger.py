"""`linkwise ledger`, called as a user calls it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import linkwise.cli.ledger as command
from linkwise.cli import main
from linkwise_ledger import DOCUMENTS, Entry, entries


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Entry, ...]]:
    """Three statements of each document: definitions, what holds, misprints."""
    kept: dict[str, tuple[Entry, ...]] = {}
    for source in DOCUMENTS:
        first = {entry.status: entry for entry in reversed(entries(source.key))}
        kept[source.key] = tuple(first[s] for s in ("definition", "holds", "misprint"))
    monkeypatch.setattr(command, "entries", kept.__getitem__)
    return kept


@pytest.mark.prove
@pytest.mark.usefixtures("short")
def test_counts_of_every_document(capsys):
    assert main(["ledger"]) == 0
    out = capsys.readouterr().out
    for source in DOCUMENTS:
        assert f"{source.key}: 3 statements, 1 hold, 1 definitions, 1 misprints\n" in out
        assert source.title in out
    n = len(DOCUMENTS)
    assert f"all: {3 * n} statements, {n} hold, {n} definitions, {n} misprints\n" in out


def test_a_document_is_a_table(capsys, short):
    assert main(["ledger", "jpl_88_11"]) == 0
    head, rule, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["number", "status", "where", "off", "by", "statement"]
    assert set(rule) == {"-", " "}
    for entry, row in zip(short["jpl_88_11"], rows, strict=False):
        assert row.startswith(entry.number) and row.endswith(entry.said)
    assert rows[-2].startswith("jpl_88_11: 3 statements")


def test_one_statement_with_what_is_printed_and_what_holds(capsys):
    assert main(["ledger", "jpl_88_11", "(5.13)"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("jpl_88_11 (5.13)  velocities of the links\n")
    assert "    printed   V = Bᵀ φᵀ Hᵀ θ̇\n" in out
    assert "    holds     V = φ* H* v\n" in out
    assert "    status    misprint, on trees: " in out and "as printed it does not fit" in out
    assert "    note      " in out


@pytest.mark.parametrize("number", ["(4.4)", "4.4", " 4.4 "])
def test_numbers_with_and_without_their_brackets(capsys, number):
    assert main(["ledger", "operator_algebra", number]) == 0
    assert capsys.readouterr().out.startswith("operator_algebra (4.4)  innovations factorisation\n")


def test_statements_by_words_of_their_titles(capsys):
    assert main(["ledger", "operator_algebra", "change of basis"]) == 0
    assert capsys.readouterr().out.startswith("operator_algebra sec. 6, change of basis")


def test_misprints_only(capsys, short):
    assert main(["ledger", "--misprints"]) == 0
    out = capsys.readouterr().out
    for source in DOCUMENTS:
        assert f"{source.key} {short[source.key][2].number}  " in out
    assert out.count("    status    misprint, on ") == len(DOCUMENTS)


def test_no_misprint(capsys):
    assert main(["ledger", "operator_algebra", "(4.4)", "--misprints"]) == 0
    assert capsys.readouterr().out == "no misprint among them\n"


def test_statements_that_branched_trees_break_say_so(capsys):
    assert main(["ledger", "random_field", "(10.3)"]) == 0
    out = capsys.readouterr().out
    assert "status    holds, on chains: " in out and "; on branched trees " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["jpl_88_12"], "no document called 'jpl_88_12' in the ledger; did you mean 'jpl_88_11'"),
        (
            ["operator_algebra", "(4.9)"],
            "no statement called '(4.9)' in operator_algebra; did you mean '",
        ),
        (["operator_algebra", ""], "no statement called '' in operator_algebra"),
        (["operator_algebra", "()"], "no statement called '()' in operator_algebra"),
    ],
)
def test_what_is_not_there(capsys, arguments, message):
    assert main(["ledger", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith(f"linkwise: {message}")


def test_what_is_not_confirmed_is_status_1(capsys, monkeypatch):
    entry = next(e for e in entries("operator_algebra") if e.number == "(4.4)")
    for error in (1e-3, float("nan"), float("inf")):
        wrong = replace(entry, check=lambda case, error=error: error)
        monkeypatch.setattr(command, "entries", lambda key, wrong=wrong: (wrong,))
        assert main(["ledger", "operator_algebra"]) == 1
        out = capsys.readouterr().out
        assert "NOT CONFIRMED" in out and "0 hold" in out and "1 NOT CONFIRMED" in out
        assert main(["ledger", "operator_algebra", "(4.4)"]) == 1
        assert "NOT CONFIRMED: " in capsys.readouterr().out


def test_a_misprint_that_holds_as_printed_is_not_confirmed(monkeypatch, capsys):
    entry = next(e for e in entries("operator_algebra") if e.status == "misprint")
    monkeypatch.setattr(
        command, "entries", lambda key: (replace(entry, check_printed=lambda case: 1e-12),)
    )
    assert main(["ledger", "operator_algebra"]) == 1
    assert "NOT CONFIRMED" in capsys.readouterr().out

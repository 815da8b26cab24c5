"""Normal forms of derivatives: the transport identity, and the decomposition lemma."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from linkwise.algebra import role
from linkwise.algebra.differential_leaf import cross, diagonal, hinge_rate, regressor, swap
from linkwise.algebra.expr import Adjoint, Expr, Symbol, Zero, nodes, product, total
from linkwise.algebra.family import lyapunov
from linkwise.algebra.space import BODY, ONE, Space
from linkwise.algebra.symbols import E_phi, H, V, phi, phi_tilde, v
from linkwise.algebra.words import Word, Words, collected, expand, left_factored, rebuilt


def tidied(expr: Expr) -> Expr:
    """An equal expression after the transport identity, with cross products that add up merged."""
    if not is_derivative(expr):
        return expr
    words, before = expand(rebuilt(expr, _opened)), dict[Word, float]()
    while words != before:
        before = words
        words = collected(pair for item in words.items() for pair in _transported(*item))
        words = _merged(words)
    return left_factored(words, expr.range, expr.domain)


def is_derivative(expr: Expr) -> bool:
    """Whether a leaf that differentiation adds is in it."""
    return any(isinstance(x, Symbol) and isinstance(x.role, role.Differential) for x in nodes(expr))


def _opened(leaf: Expr) -> Expr | None:
    """What a name means; other letters stay."""
    name = leaf.of if isinstance(leaf, Adjoint) else leaf
    if not isinstance(name, Symbol) or not isinstance(name.role, role.Named):
        return None
    return name.role.definition.T if isinstance(leaf, Adjoint) else name.role.definition


OWN, TURN = cross(H.T @ v), cross(V)


def _transported(word: Word, number: float) -> Iterable[tuple[Word, float]]:
    """φ* [H* v ×] φ* = [V ×] φ* - φ* [V ×] + φ* [H* v ×]; for φ̃* without the last term."""
    for i in range(len(word) - 2):
        last = word[i + 2]
        if word[i] is phi.T and word[i + 1] is OWN and last in (phi.T, phi_tilde.T):
            head, tail = word[:i], word[i + 3 :]
            yield (*head, TURN, phi.T, *tail), number
            yield (*head, phi.T, TURN, *tail), -number
            if last is phi.T:
                yield (*head, phi.T, OWN, *tail), number
            return
    yield word, number


def _merged(words: Words) -> Words:
    """[x ×] + [y ×] = [x + y ×], in words that differ in this letter only."""
    for word in words:
        for i, letter in enumerate(word):
            linear = _linear(letter)
            if linear is None:
                continue
            kind, make, _ = linear
            around = (len(word), word[:i], word[i + 1 :])
            same = [
                (number, other, key[2])
                for other, number in words.items()
                if (len(other), other[:i], other[i + 1 :]) == around
                and (key := _linear(other[i])) is not None
                and key[0] == kind
            ]
            if len(same) < 2:
                continue
            sign = 1.0 if same[0][0] > 0.0 else -1.0
            merged = make(_sum([(sign * number, x) for number, _, x in same]))
            rest = [item for item in words.items() if item[0] not in {w for _, w, _ in same}]
            if not isinstance(merged, Zero):
                rest.append(((*word[:i], merged, *word[i + 1 :]), sign))
            return _merged(collected(rest))
    return words


def _linear(letter: Expr) -> tuple[object, Callable[[Expr], Expr], Expr] | None:
    """For a leaf that a vector x gives: its kind, how to make it of another x, and x."""
    key = letter.role if isinstance(letter, Symbol) else None
    if isinstance(key, role.Cross):
        return ("×", key.swapped), swap if key.swapped else cross, key.of
    if isinstance(key, role.HingeRate) and len(key.slots) == 3 and key.slots[2] == "column":
        (x,) = key.vectors
        return ("∂", x.range), hinge_rate, x
    if isinstance(key, role.Regressor | role.Diagonal):
        return type(key), regressor if isinstance(key, role.Regressor) else diagonal, key.of
    return None


def _sum(terms: list[tuple[float, Expr]]) -> Expr:
    """A sum of vectors, with φ* x - x as φ̃* x."""
    vector = total(terms)
    words = expand(rebuilt(vector, _opened))
    for word, number in list(words.items()):
        tail = word[1:]
        if word and word[0] is phi.T and words.get(tail) == -number:
            del words[tail], words[word]
            words = collected([*words.items(), ((phi_tilde.T, *tail), number)])
    return left_factored(words, vector.range, ONE)


def decomposed(expr: Expr) -> Expr:
    """The decomposition lemma for every term L φ X φ* Y with memoryless L, X and Y.

        L φ X φ* Y = L R Y + L φ̃ R Y + L R φ̃* Y,   R = E_φ R E_φ* + X

    An inverse in front, as in 𝓜⁻¹ L φ X φ* Y, stays there.
    """
    behind = dict[Word, Words]()
    for word, number in expand(rebuilt(expr, _opened)).items():
        inverses = [i for i, x in enumerate(word, 1) if x.causality == "mixed"]
        n = inverses[-1] if inverses else 0
        behind.setdefault(word[:n], {})[word[n:]] = number
    terms = list[tuple[float, Expr]]()
    for head, words in behind.items():
        range_ = head[-1].domain if head else expr.range
        terms.append((1.0, product((*head, _decomposed(words, range_, expr.domain)))))
    return total(terms) if terms else expr


def _is_of_bodies(letters: Word) -> bool:
    """Whether all of them are block diagonal over the bodies."""
    return all(x.range.block == x.domain.block == "body" for x in letters)


def _decomposed(words: Words, range_: Space, domain: Space) -> Expr:
    rest = dict(words)
    cores = dict[tuple[Word, Word], Words]()  # by L and X, the numbers of each Y
    for word, number in words.items():
        places = [i for i, letter in enumerate(word) if letter.causality != "memoryless"]
        if [word[i] for i in places] == [phi, phi.T] and _is_of_bodies(word[slice(*places)]):
            i, j = places
            cores.setdefault((word[:i], word[i + 1 : j]), {})[word[j + 1 :]] = number
            del rest[word]
    inward = dict[Word, list[Expr]]()
    terms = list[Expr]()
    for (left, core), rights in cores.items():
        R, Y = lyapunov(E_phi, product(core)), left_factored(rights, BODY, domain)
        inward.setdefault(left, []).append(R @ Y)
        terms += [product((*left, R, phi_tilde.T, Y)), product((*left, R, Y))]
    for word, number in list(rest.items()):  # L φ̃ Z travels with L φ̃ R Y
        i = word.index(phi_tilde) if phi_tilde in word else 0
        if i and word[:i] in inward:
            inward[word[:i]].append(number * product(word[i + 1 :]))
            del rest[word]
    for left, each in inward.items():
        terms.append(product((*left, phi_tilde)) @ total([(1.0, e) for e in each]))
    return total([(1.0, left_factored(rest, range_, domain)), *((1.0, e) for e in terms)])

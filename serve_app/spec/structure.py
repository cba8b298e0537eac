"""From YAML's plain values to a Spec: what has the wrong shape is found, and what is right is kept.

So that one mistake causes no other finding, a value that is wrong becomes UNKNOWN, and a misspelt key is read as the
one that was probably meant.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from serve_app.spec.document import Lost
from serve_app.spec.findings import Fault, Place, show_place
from serve_app.spec.part import UNKNOWN, shown
from serve_app.spec.schema import Spec
from serve_app.spec.spelling import LEFT_OUT, closest, in_the_specs_words
from serve_app.spec.value_words import NOT_A_CHOICE, OR_REMOVE, UNKNOWN_KEY, WRONG_FORM, WRONG_KIND, describe
from serve_app.spec.vocabulary import form_at, homes, is_list_at, nearest_unknown, nothing_at, part_at

# Each round finds what the one before hid; a spec is not as deep as this.
_ROUNDS = 24
_HOMES_NAMED = 3
_KEY = "[key]"  # pydantic's last step to the key of an item, instead of its value


class Structure(NamedTuple):
    """What came of plain values. `renamed`: the places of misspelt keys, and the key each was read as.

    Where something may be lost, it is UNKNOWN in `spec`, and taken as never given in `bare`.
    """

    spec: Spec | None
    faults: list[Fault]
    renamed: list[tuple[Place, str]]
    bare: Spec | None = None


def read_structure(
    data: dict[str, Any],
    unreadable: Sequence[Place] = (),
    lost: Sequence[Lost] = (),
    empty: Sequence[Place] = (),
) -> Structure:
    """The Spec in `data` (which is changed), and what is wrong with its shape.

    `empty`: keys with nothing behind them. A `null` that is written out is what a key has that is left out.

    What is wrong, and what could not be read, is UNKNOWN in the Spec, so that the rest can be checked. The Spec is None
    where too little is left.
    """
    if not lost:
        return _read(data, unreadable, (), empty)
    bare = copy.deepcopy(data)
    for place, key, _ in lost:
        if type(holder := _at(bare, place)) is dict and holder.get(key, UNKNOWN) is None:
            del holder[key]
    whole = _read(data, unreadable, list(dict.fromkeys(lost)), empty)
    return whole._replace(bare=_read(bare, unreadable, (), empty).spec)


def _read(data: dict[str, Any], unreadable: Sequence[Place], lost: Sequence[Lost], empty: Sequence[Place]) -> Structure:
    repair = _Repair(data, empty)
    for place in unreadable:
        repair.make_unknown(place)
    for _ in range(_ROUNDS):
        incomplete = [place for entry in lost for place in repair.lose(entry)]
        try:
            spec = Spec.model_validate(data, context=repair.names)
        except ValidationError as failed:
            repair.round(failed.errors(include_url=False))
            continue
        if incomplete:  # though all that is in them has been looked at
            for place in incomplete:
                repair.make_unknown(place)
            spec = Spec.model_validate(data, context=repair.names)
        return Structure(spec, repair.faults + repair.nothings(), repair.renamed)
    return Structure(None, repair.faults, repair.renamed)


class _Repair:
    """The faults found so far, and the data without them."""

    def __init__(self, data: dict[str, Any], empty: Sequence[Place]):
        self._data = data
        self._empty = dict.fromkeys(place for place in empty if nothing_at(place) is not None)
        self._lost: set[Place] = set()
        self._refused: set[Place] = set()  # names that may be lost, and could not have been there
        self._accounted_for: set[Place] = set()  # keys that are missing because they stand under another name
        self.names: set[str] = set()  # wrong ones that are let pass, since other parts of the spec refer to them
        self.faults: list[Fault] = []
        self.renamed: list[tuple[Place, str]] = []
        for place in empty:
            part = part_at(place[:-1])
            if place in self._empty or (part is not None and place[-1] not in part.model_fields):
                self.make_unknown(place)

    def nothings(self) -> list[Fault]:
        """Keys without a value, which would be taken as left out."""
        return [_fault(nothing_at(place), place) for place in self._empty]

    def round(self, problems: list[Any]) -> None:
        """Mend what one validation found: unknown keys first, since one may be another that is missing."""
        placed = [(problem, self._place(problem["loc"])) for problem in sorted(problems, key=_order)]
        for problem, place in placed:
            if problem["type"] == "extra_forbidden":
                self._unknown_key(place)
            elif problem["loc"][-1] == _KEY:
                self._wrong_name(problem, place)
            else:
                self._value(problem, place)

    def _wrong_name(self, problem: Any, place: Place) -> None:
        """A name that a mapping of names does not take."""
        name = str(place[-1])
        if place in self._lost:
            self._refused.add(place)
            _at(self._data, place[:-1]).pop(name, None)
            return
        words = describe(problem, name)
        rule = NOT_A_CHOICE if words.rule is NOT_A_CHOICE else WRONG_FORM
        self.faults.append(rule.at(place, f"the name {words.what}", remedy=words.remedy))
        if problem["type"] == "form":
            self.names.add(name)
        else:
            choices = words.what.partition(" none of ")[2].split(", ")
            self._move(place, _at(self._data, place[:-1]), closest(name, choices))

    def _unknown_key(self, place: Place) -> None:
        name = str(place[-1])
        holder = _at(self._data, place[:-1])
        if name in LEFT_OUT:
            holder.pop(name)
            why, instead = LEFT_OUT[name]
            what = f"there is no key {shown(name)} here"
            self.faults.append(UNKNOWN_KEY.at(place, what, consequence=why, remedy=instead))
            return
        part = part_at(place[:-1])
        fields = list(part.model_fields) if part else []
        foreign = in_the_specs_words(name, fields)
        meant, how = foreign if foreign and (foreign[0] in fields or closest(name, fields) is None) else (None, None)
        meant = meant or closest(name, fields)
        remedy = None
        if meant in fields:
            remedy = f"write {meant}, {how}" if how else f"did you mean {meant}?"
            if name.startswith(f"{meant}:"):
                remedy = f"put a space behind the colon, as {meant}: {name.removeprefix(f'{meant}:')}"
            self._accounted_for.add((*place[:-1], str(meant)))
            self._move(place, holder, meant, keep=how is None)
        elif found := homes(meant or name, place[:-1]):
            where = " or ".join(show_place(home) for home in found[:_HOMES_NAMED])
            written = f"write {meant}{f', {how}' if how else ''} in" if meant else "it belongs in"
            remedy = f"{written} {where}"
            holder.pop(name)
            for home in found:
                self._empty.pop(home, None)  # whose own keys have too little indentation
                self._missing_at_home((*home, meant or name))
        else:
            holder.pop(name)
        self.faults.append(UNKNOWN_KEY.at(place, f"there is no key {shown(name)} here", remedy=remedy))

    def _move(self, place: Place, holder: Any, meant: str | None, keep: bool = True) -> None:
        """Read the value under the key that was meant, or as unknown where it is written otherwise there."""
        if type(holder) is not dict:
            return
        value = holder.pop(str(place[-1]))
        if meant is None or holder.get(meant, UNKNOWN) is not UNKNOWN:
            return
        holder[meant] = value if keep else UNKNOWN
        self.renamed.append((place, meant))

    def _missing_at_home(self, home: Place) -> None:
        """The key that stands elsewhere is given, though nobody knows what it is for there."""
        self._accounted_for.add(home)
        holder = _at(self._data, home[:-1])
        if type(holder) is dict:
            holder.setdefault(home[-1], UNKNOWN)

    def _value(self, problem: Any, place: Place) -> None:
        value = problem["input"]
        if problem["type"] == "int_type" and type(value) is float and value.is_integer():
            self._put(place, int(value))  # 8.0 is 8
            return
        if problem["type"] == "missing" and place in self._accounted_for:
            if _at(self._data, place) is None:
                self.make_unknown(place)
            return
        if value is not UNKNOWN:
            self.faults.append(_fault(problem, place))
        self.make_unknown(place)

    def _place(self, loc: Sequence[int | str]) -> Place:
        """The part of `loc` that the file has: what is written short has less, and what is missing still has its key.

        An item that stands for a list of one becomes that list, so that it has the place that `loc` gives it.
        """
        place: list[int | str] = []
        holder: Any = None
        found: Any = self._data
        for step in loc:
            if type(found) is dict and type(step) is int:
                found = holder[place[-1]] = [found]
            written_short = type(found) is not dict and (type(found) is not list or type(step) is str)
            if written_short or step == _KEY:
                break
            place.append(step)
            holder, found = found, _step(found, step)
        return tuple(place)

    def lose(self, entry: Lost) -> list[Place]:
        """Take what may be lost as given and unknown. Returns the places of what cannot be known as a whole."""
        place = self._as_meant(entry.place)
        for here in (place, place[:-1]):  # which may have been of the other kind before
            found = _at(self._data, here)
            if type(found) is (dict if is_list_at(here) else list):
                self.make_unknown(here)
        around = [place[: len(place) - up] for up in range(min(entry.levels, len(place) + 1))]
        if entry.key is not None:
            takers = self._takers(around, entry.key)
            if place not in takers and type(holder := _at(self._data, place)) is dict:
                holder.pop(entry.key, None)
            if takers:
                found = [(*here, entry.key) for here in takers]
                self._lost.update(found)
                for here in found:
                    if here not in self._refused:
                        self.make_unknown(here)
                return [here[:-1] for here in found if here in self._refused]
        for here in around:
            self._make_rest_unknown(here)
        return [here for here in around if part_at(here) is None and type(_at(self._data, here)) in (dict, list)]

    def _takers(self, around: list[Place], key: str) -> list[Place]:
        """Those of these places where an entry with the key can be: parts that have it, or else mappings of names."""
        parts = [here for here in around if key in getattr(part_at(here), "model_fields", ())]
        names = [here for here in around if part_at(here) is None and type(_at(self._data, here)) is dict]
        return parts + [here for here in names if not parts or here == around[0]]

    def _make_rest_unknown(self, place: Place) -> None:
        """Whatever the part could have beside what it has."""
        found, part = _at(self._data, place), part_at(place)
        if type(found) is dict and part is not None:
            for field in part.model_fields:
                found.setdefault(field, UNKNOWN)

    def _as_meant(self, place: Place) -> Place:
        for misspelt, meant in self.renamed:
            if place[: len(misspelt)] == misspelt:
                place = (*misspelt[:-1], meant, *place[len(misspelt) :])
        return place

    def make_unknown(self, place: Place) -> None:
        self._put(nearest_unknown(place), UNKNOWN)

    def _put(self, place: Place, value: Any) -> None:
        """Put a value where there is something to hold it."""
        holder: Any = _at(self._data, place[:-1])
        step: Any = place[-1] if place else None
        if place and (type(holder) is dict or (type(holder) is list and step in range(len(holder)))):
            holder[step] = value


def _fault(problem: Any, place: Place) -> Fault:
    words = describe(problem, place[-1] if place else "the spec")
    remedy = words.remedy
    form = form_at(place) if words.rule is WRONG_KIND else None
    if form is not None:
        remedy = f"write {form.wanted}{OR_REMOVE if problem['input'] is None else ''}"
    if remedy is not None and not _may_be_left_out(place):
        remedy = remedy.removesuffix(OR_REMOVE)
    return words.rule.at(place, words.what, remedy=remedy, consequence=words.consequence)


def _may_be_left_out(place: Place) -> bool:
    part = part_at(place[:-1])
    field = part.model_fields.get(str(place[-1])) if part and place else None
    return field is None or not field.is_required()


def _order(problem: Any) -> int:
    """Names come last: with a name, all that it stands for may be removed."""
    return 0 if problem["type"] == "extra_forbidden" else 2 if problem["loc"][-1:] == (_KEY,) else 1


def _at(data: Any, place: Place) -> Any:
    for step in place:
        data = _step(data, step)
    return data


def _step(holder: Any, step: int | str) -> Any:
    if type(holder) is dict:
        return holder.get(step)
    return holder[step] if type(holder) is list and isinstance(step, int) and step < len(holder) else None

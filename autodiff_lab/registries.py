"""The registry: every op by name, which names are free, and what happens when a name is defined again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from threading import RLock
from typing import TYPE_CHECKING, Any

from . import events
from .signatures import RegistrationError, Schema, place_of

if TYPE_CHECKING:
    from .families import Family
    from .operators import Op


_next_change = count(1).__next__  # two threads never get the same number


class Registry(Mapping[str, "Op"]):
    """Every op by name.

    Threads may read while another registers: a notebook's widgets are answered in a thread of their own while a cell runs. So
    the tables are replaced and never changed, and who reads one sees a whole one.

    >>> import autodiff_lab as ad
    >>> ad.registry["mul"]
    <op mul(x, y)>
    """

    def __init__(self) -> None:
        self._definitions: dict[str, Op | Family] = {}
        self._ops: dict[str, Op] = {}
        self._unfinished: dict[str, Callable[[], str]] = {}  # names whose registration has begun: what is missing
        self._reserved: dict[str, str] = {}  # names in ops that are no op: what they are
        self.changes = 0  # another one when an op, a kernel or a rule is new: what was derived before is out of date
        self.lock = RLock()  # held while an op is registered, changed or completed; a call takes no lock

    def note_change(self) -> None:
        """What was derived from ops, kernels and rules before is out of date."""
        self.changes = _next_change()

    def reserve(self, names: Collection[str], what: str) -> None:
        """Keep names of ``ops`` that mean something else from being ops."""
        self._reserved.update(dict.fromkeys(names, what))

    def admit(self, schema: Schema) -> None:
        """Refuse a name that another module has taken."""
        if schema.name in self._reserved:
            raise RegistrationError(
                f"op {schema.name}: the name is taken by {self._reserved[schema.name]}; choose another"
            )
        old = self._definitions.get(schema.name)
        if old is not None and old.module != schema.module:
            raise RegistrationError(
                f"op {schema.name}: the name is taken by module {old.module} ({place_of(old.source)}); choose another name in "
                f"{schema.module or 'this code'} ({place_of(schema.source)})"
            )

    def begin(self, schema: Schema, missing: Callable[[], str]) -> None:
        """A registration in several steps begins: until ``add`` the name means nothing; who asks is told what is missing."""
        with self.lock:
            self.admit(schema)
            self._unfinished = {**self._unfinished, schema.name: missing}

    def add(self, definition: Op | Family) -> None:
        """Register an op. The module that defined a name may define it again, as when a notebook cell is run twice."""
        with self.lock:
            self.admit(definition.schema)
            self.note_change()
            old = self._definitions.get(definition.name)
            gone = () if old is None else tuple(member.name for member in old.members)
            kept = {name: op for name, op in self._ops.items() if name not in gone} if gone else self._ops
            self._ops = {**kept, **{member.name: member for member in definition.members}}
            self._definitions = {**self._definitions, definition.name: definition}
            self._unfinished = {name: text for name, text in self._unfinished.items() if name != definition.name}
        if old is not None:
            _tell_replaced(old, definition)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """What is registered inside the block is gone after it."""
        before = self._definitions, self._ops, self._unfinished
        try:
            yield
        finally:
            with self.lock:
                self._definitions, self._ops, self._unfinished = before
                self.note_change()

    def has(self, definition: Op | Family) -> bool:
        """Whether exactly this op or family is registered."""
        return self._definitions.get(definition.name) is definition and definition.name not in self._unfinished

    def is_current(self, op: Op) -> bool:
        """Whether an op's name was not given to another one since."""
        definition = self._definitions.get(op.name.partition(".")[0])
        return definition is None or op in definition.members

    def names(self) -> list[str]:
        """The names of the functions that users call: one for each definition, however many ops it has."""
        return [name for name in self._definitions if name not in self._unfinished]

    def binding(self, name: str) -> Any:
        """The function that users call, or None where there is none of that name."""
        definition = self._definitions.get(name)
        return None if definition is None or name in self._unfinished else definition.binding

    def __getitem__(self, name: str) -> Op:
        found = self._ops.get(name)
        if found is None or name not in self:
            raise KeyError(self.unknown(name, self._ops))
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._ops if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._ops and str(name).partition(".")[0] not in self._unfinished

    def unknown(self, name: object, known: Collection[str]) -> str:
        """The text of the error that an unknown name deserves: why it is none, or what is near, and where all are listed."""
        if not isinstance(name, str):
            return f"an op is looked up by its name, as in registry['mul']; got {name!r}"
        from difflib import get_close_matches  # here, because importing it costs 1 ms

        if name in self._unfinished:
            return f"op {name} is not registered yet, it has {self._unfinished[name]()}; go on with its register_op"
        if name in self._definitions:
            members = ", ".join(op.name for op in self._definitions[name].members)
            return f"{name} is several ops: {members}"
        near = get_close_matches(name, known, cutoff=0.5)
        meant = f"did you mean {' or '.join(near)}? " if near else ""
        return f"no op named {name!r}; {meant}dir(ops) lists all {len(known)}"


def _tell_replaced(old: Op | Family, new: Op | Family) -> None:
    """One short notice on stderr, which a notebook shows every time; a warning would be shown for the first time only."""
    print(
        f"op {new.name} is defined anew ({place_of(new.source)}); graphs and Tensors from before keep the old one "
        f"({place_of(old.source)})",
        file=sys.stderr,
    )
    if (tell := events.receiver()) is not None:
        tell(events.OpReplaced(new.name, old.source, new.source))


registry = Registry()

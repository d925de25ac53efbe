"""Base class of the parts of a model: small objects that hold hyper-parameters and nothing else."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Self

from sklearn.base import BaseEstimator, clone

from multicause.compatibility import Requirements
from multicause.runtime.scikit_learn import setting_names


class Part(BaseEstimator):
    """Base class of priors, combinations, noises, posteriors, updates, schedules and other parts of models.

    As a scikit-learn object, a part can be cloned and searched (``posterior__max_active``). Two parts of one class with
    the same hyper-parameters are equal: compiled programs are cached by that equality, so that a second fit with equal
    parts on the same shapes compiles nothing. Learned values are never stored here, but in
    :class:`multicause.records.Parameters`.
    """

    #: Requirements of this part on the other parts of a model (:mod:`multicause.compatibility`).
    requires: Requirements = Requirements()

    def validate(self) -> None:
        """Raise ValueError if a hyper-parameter is invalid."""
        return

    def settings_to_save(self) -> dict[str, Any]:
        """Return the settings in a form that a file can hold."""
        return self.get_params(deep=False)

    def optional_methods(self) -> tuple[str, ...]:
        """Return the names of the methods that this part must have because of what it declares to offer."""
        return ()

    def _identity(self) -> tuple[Any, ...]:
        """Return the class and settings, which define equality."""
        return type(self), *(getattr(self, name) for name in _setting_names(type(self)))  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self._identity() == other._identity()

    def __hash__(self) -> int:
        try:
            return hash(self._identity())
        except TypeError as error:
            raise TypeError(
                f"The hyper-parameters of {type(self).__name__} must be hashable (numbers, strings, tuples, "
                f"functions); got {self.get_params(deep=False)}. Use a tuple instead of a list or an array."
            ) from error


@cache
def _setting_names(kind: type[Part]) -> tuple[str, ...]:
    """Return the names of the hyper-parameters; inspecting them takes much longer than the rest of a hash."""
    return setting_names(kind)


def resolve(part: Any, names: dict[str, type], kind: str, base: type) -> Any:
    """Return a new part from a name or an object; the user's object is copied, never kept or changed."""
    if isinstance(part, str) and names:
        if part not in names:
            raise ValueError(f"Unknown {kind} {part!r}. Known: {', '.join(map(repr, names))}, or an object.")
        return names[part]()
    if not isinstance(part, base) or isinstance(part, type):
        hint = f" Did you mean {part.__name__}()?" if isinstance(part, type) else ""
        known = f"one of {', '.join(map(repr, names))} or " if names else ""
        raise TypeError(f"{kind} must be {known}a {base.__name__} object; got {part!r}.{hint}")
    copied = clone(part)
    missing = missing_methods(copied)
    if missing:
        raise TypeError(f"{type(copied).__name__} must implement {', '.join(missing)}, as {base.__name__} asks.")
    copied.validate()
    return copied


class PartChoice(NamedTuple):
    """Meaning of names and of None in one setting of an estimator that is a part."""

    names: Mapping[str, Callable[[], Any]] = {}
    #: Parts that None may stand for, the preferred one first.
    defaults: Callable[[], Sequence[Any]] = tuple


class NestedParts(BaseEstimator):
    """Base class of estimators whose ``set_params`` sets parameters of parts given as objects, names or None."""

    def _part_choices(self) -> dict[str, PartChoice]:
        """Return the choices of each setting that is a part."""
        return {}

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this estimator and of its parts, such as ``posterior__max_active``.

        A part that is given by name is replaced by an object of that name. One that is None is replaced by the part
        that would be used with the settings of this estimator; where that depends on them, as on ``n_components``, and
        it lacks the parameter, by another one that None may stand for.

        Parameters
        ----------
        **params : dict
            Parameters by their names.

        Returns
        -------
        self : estimator
        """
        super().set_params(**{name: value for name, value in params.items() if "__" not in name})
        nested = {name: value for name, value in params.items() if "__" in name}
        wanted: dict[str, list[str]] = {}
        for name in nested:
            role, _, rest = name.partition("__")
            wanted.setdefault(role, []).append(rest.partition("__")[0])
        settings = self.get_params(deep=False)
        for role, names in wanted.items():
            if role in settings and not hasattr(settings[role], "get_params"):
                setattr(self, role, self._part_with(role, settings[role], names))
        return super().set_params(**nested)

    def _part_with(self, role: str, value: Any, wanted: Sequence[str]) -> Any:
        """Return the part that a name or None stands for, which must have all parameters in ``wanted``."""
        choice = self._part_choices().get(role, PartChoice())
        if isinstance(value, str) and choice.names and value not in choice.names:
            raise ValueError(f"Unknown {role} {value!r}. Known: {', '.join(map(repr, choice.names))}, or an object.")
        named = isinstance(value, str) and value in choice.names
        candidates = [choice.names[value]()] if named else list(choice.defaults()) if value is None else []
        if not candidates:
            raise ValueError(
                f"{role}={value!r} has no parameters, so that {role}__{wanted[0]} cannot be set. Set {role} to an "
                "object that has it."
            )
        settings = [list(part.get_params(deep=False)) for part in candidates]
        for part, known in zip(candidates, settings, strict=True):
            if all(name in known for name in wanted):
                return part
        unknown = [name for name in wanted if name not in settings[0]]
        meaning = "" if named else f" stands for {' or '.join(map(repr, candidates))}, which"
        available = " or ".join(", ".join(known) or "none" for known in settings)
        raise ValueError(f"{role}={value!r}{meaning} has no {unknown[0]!r}; its settings are {available}.")


def missing_methods(part: Part) -> list[str]:
    """Return the abstract methods of a part, and those that it lacks although it declares to offer them."""
    kind = type(part)
    abstract = {name for name in dir(kind) if getattr(getattr(kind, name, None), "__isabstractmethod__", False)}
    return sorted(abstract.union(name for name in part.optional_methods() if not hasattr(kind, name)))

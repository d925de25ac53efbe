"""What every part of a model is: a small object that holds hyper-parameters, and nothing else."""

from typing import Any

from sklearn.base import BaseEstimator, clone


class Part(BaseEstimator):
    """A prior, combination, noise, posterior, update or schedule.

    Being a scikit-learn object, a part can be cloned and searched (``posterior__max_states``). Two parts of one
    class with the same hyper-parameters are equal: compiled programs are kept by that equality, so that a second
    fit with equal parts on the same shapes compiles nothing. Learned values never live here, but in
    :class:`multicause.model.Parameters`.
    """

    def validate(self) -> None:
        """Raise ValueError for impossible hyper-parameters."""
        return

    def _identity(self) -> tuple[Any, ...]:
        return type(self), *sorted(self.get_params(deep=False).items())

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


def resolve(part: Any, names: dict[str, type], kind: str, base: type) -> Any:
    """A part of its own from a name or an object: what the user passed is copied, never kept or changed."""
    if isinstance(part, str) and names:
        if part not in names:
            raise ValueError(f"Unknown {kind} {part!r}. Known: {', '.join(map(repr, names))}, or an object.")
        return names[part]()
    if not isinstance(part, base) or isinstance(part, type):
        hint = f" Did you mean {part.__name__}()?" if isinstance(part, type) else ""
        known = f"one of {', '.join(map(repr, names))} or " if names else ""
        raise TypeError(f"{kind} must be {known}a {base.__name__} object; got {part!r}.{hint}")
    own = clone(part)
    missing = lacks(own, *(name for name in dir(base) if getattr(getattr(base, name), "__isabstractmethod__", False)))
    if missing:
        raise TypeError(f"{type(own).__name__} must implement {', '.join(missing)}, as {base.__name__} asks.")
    own.validate()
    return own


def lacks(part: Part, *methods: str) -> list[str]:
    """Those of the methods that a part's class does not have or leaves abstract."""
    found = {name: getattr(type(part), name, None) for name in methods}
    return [name for name, method in found.items() if method is None or getattr(method, "__isabstractmethod__", False)]

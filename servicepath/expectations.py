"""The inventory's ``upgrade:``: what a change between two runs means, said by a person."""

from __future__ import annotations

import pathlib
from typing import Annotated, Any, Literal

import pydantic

from .model.upgrade_rules import CHANGES, Rule

Text = Annotated[str, pydantic.StringConstraints(min_length=1, strict=True)]


class Section(pydantic.BaseModel):
    """A part of the inventory: unknown keys are errors."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class UpgradeRule(Section):
    """What a change between two runs means; text is a shell pattern. Exactly one of ``fact`` and ``conclusion`` is given."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, serialize_by_alias=True)

    fact: Text | None = None
    conclusion: Text | None = None
    where: Text | None = None
    change: Text | None = None
    before: Annotated[Text | None, pydantic.Field(alias="from")] = None
    to: Text | None = None
    standing: Annotated[Literal["expected", "tolerated", "regression"], pydantic.Field(alias="is")] = "expected"
    because: Text | None = None

    @pydantic.model_validator(mode="after")
    def _one_thing(self) -> UpgradeRule:
        if (self.fact is None) == (self.conclusion is None):
            raise ValueError("expected either fact: or conclusion:")
        if not self.rule.can_fit:
            kinds = "held -> skipped or the like" if self.conclusion else ", ".join(CHANGES["fact"])
            raise ValueError(f"change: expected {kinds}")
        return self

    @property
    def rule(self) -> Rule:
        """The rule as the comparison takes it; ``->`` in ``change`` is the arrow."""
        change = self.change.replace("->", "→").replace(" ", "") if self.change else None
        common: dict[str, Any] = {"standing": self.standing, "where": self.where, "change": change, "before": self.before, "to": self.to}
        about: Literal["fact", "conclusion"] = "fact" if self.fact is not None else "conclusion"
        return Rule(about, self.fact or self.conclusion or "*", because=self.because or "by the inventory", **common)


class Upgrade(Section):
    """What ``--baseline`` and the compare command make of changes.

    Attributes:
        expect: the rules, in their order.
        helm_values: what ``helm get values`` printed of Cilium's release, to be compared too; an absolute path.
    """

    expect: tuple[UpgradeRule, ...] = ()
    helm_values: pathlib.Path | None = None

    @pydantic.model_validator(mode="after")
    def _one_word(self) -> Upgrade:
        for number, rule in enumerate(self.rules):
            for earlier, other in enumerate(self.rules[:number]):
                if rule.contradicts(other):
                    raise ValueError(f"expect.{number} says otherwise than expect.{earlier} of the same change, which decides")
        return self

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, in their order."""
        return tuple(each.rule for each in self.expect)
